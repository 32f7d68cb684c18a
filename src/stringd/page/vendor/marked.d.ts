export class Marked {
  constructor(options?: Record<string, unknown>);
  parse(text: string, options?: Record<string, unknown>): string | Promise<string>;
}
