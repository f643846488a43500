const adopted = new Set<string>();

/**
 * Adds a style sheet to the document once, in a way that a strict content security policy allows.
 */
export function adoptStyle(text: string): void {
  if (!adopted.has(text) && 'adoptedStyleSheets' in document) {
    adopted.add(text);
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
  }
}
