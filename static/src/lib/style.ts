const adopted = new Set<string>();

/**
 * Has the document use a style sheet, once, and in a way that a strict content security policy
 * allows.
 */
export function adoptStyle(text: string): void {
  if (!adopted.has(text) && 'adoptedStyleSheets' in document) {
    adopted.add(text);
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
  }
}
