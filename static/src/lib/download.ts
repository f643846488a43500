/** Downloads of generated files. */

import { h } from './dom';

export function download(blob: Blob, file: string): void {
  const url = URL.createObjectURL(blob);
  h('a', { href: url, download: file }).click();
  // Some browsers read the data only a moment after the click.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
