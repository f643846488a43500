/** Files that the user exports: CSV tables, and downloads of generated data. */

import { createElement } from './dom';

/** Returns a CSV table. Cells are not escaped, so names from other users must be quoted first. */
export function formatCsv(
  rows: readonly (readonly (string | number | boolean | null)[])[],
): string {
  return rows.map((row) => `${row.map((cell) => cell ?? '').join()}\r\n`).join('');
}

/**
 * Quotes a name that another user chose. As a result, spreadsheets do not read the name as a
 * formula, and no character in the name ends the cell.
 */
export function quoteCell(name: string): string {
  return `"${name.replace(/^(?=[=+\-@\t\r\n])/, "'").replaceAll('"', '""')}"`;
}

export function downloadBlob(blob: Blob, file: string): void {
  const url = URL.createObjectURL(blob);
  createElement('a', { href: url, download: file }).click();
  // Some browsers read the data only a moment after the click.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
