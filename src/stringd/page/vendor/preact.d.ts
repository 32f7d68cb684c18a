export const h: (...words: any[]) => any;
export const Fragment: any;
export function render(what: any, where: Element): void;
