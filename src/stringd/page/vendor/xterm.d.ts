/** What the page uses of it. */
export interface Theme { [name: string]: string }
export class Terminal {
  constructor(options: { [name: string]: unknown });
  cols: number;
  rows: number;
  options: { theme: Theme };
  open(place: HTMLElement): void;
  write(text: string): void;
  reset(): void;
  resize(columns: number, rows: number): void;
  focus(): void;
  blur(): void;
  dispose(): void;
  onData(listener: (text: string) => void): void;
  onBinary(listener: (text: string) => void): void;
  attachCustomKeyEventHandler(handler: (event: KeyboardEvent) => boolean): void;
}
