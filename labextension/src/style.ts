/** Puts a style sheet into the document, once. */
export function addStyle(id: string, text: string): void {
  if (document.getElementById(id) === null) {
    const style = document.createElement('style');
    style.id = id;
    style.textContent = text;
    document.head.append(style);
  }
}
