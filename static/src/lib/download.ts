/** Hands something to the browser as a file to save. */

import { h } from './dom';

export function download(blob: Blob, file: string): void {
  const url = URL.createObjectURL(blob);
  h('a', { href: url, download: file }).click();
  // The browser has begun to read it when the click is over; some do so a moment later.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
