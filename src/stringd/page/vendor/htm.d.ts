declare const htm: { bind(h: (...words: any[]) => any): (strings: TemplateStringsArray, ...values: any[]) => any };
export default htm;
