/** CSV files for spreadsheets and programs. */

/** Returns a CSV table. Cells are not escaped, so names from other users must be quoted first. */
export function formatCsv(
  rows: readonly (readonly (string | number | boolean | null)[])[],
): string {
  return rows.map((row) => `${row.map((cell) => cell ?? '').join()}\r\n`).join('');
}

/**
 * Quotes a name that another user chose, so that spreadsheets do not read the name as a formula and
 * the name cannot end its cell.
 */
export function quoteCell(name: string): string {
  return `"${name.replace(/^(?=[=+\-@\t\r\n])/, "'").replaceAll('"', '""')}"`;
}
