/** Hands a text to the browser as a file to save. */

import { h } from './dom';

export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h('a', { href: url, download: name }).click();
  // The browser has the file by then.
  setTimeout(() => URL.revokeObjectURL(url));
}
