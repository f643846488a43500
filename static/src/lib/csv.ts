/** Tables that spreadsheets and programs read. */

/** Cells that are text are written as they are: what strangers have chosen is to be `quoted`. */
export function csvTable(rows: readonly (readonly (string | number | boolean | null)[])[]): string {
  return rows.map((row) => `${row.map((cell) => cell ?? '').join()}\r\n`).join('');
}

/** Names come from strangers: none is a formula, and none ends its cell. */
export function quoted(name: string): string {
  return `"${name.replace(/^(?=[=+\-@\t\r\n])/, "'").replaceAll('"', '""')}"`;
}
