/**
 * Returns the entry of a table under a name from other users, which may be an inherited property
 * such as `constructor`.
 */
export function findOwnProperty<T>(
  table: Readonly<Partial<Record<string, T>>>,
  name: string,
): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
