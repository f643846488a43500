/** Downloads of generated files. */

import { createElement } from './dom';

export function downloadBlob(blob: Blob, file: string): void {
  const url = URL.createObjectURL(blob);
  createElement('a', { href: url, download: file }).click();
  // Some browsers read the data only a moment after the click.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
