declare const DOMPurify: {
  sanitize(text: string, options: Record<string, unknown>): DocumentFragment;
  addHook(name: string, hook: (node: Element) => void): void;
};
export default DOMPurify;
