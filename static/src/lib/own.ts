/**
 * Returns the property `name` of `table` if the table itself has it, and otherwise `undefined`. The
 * name comes from other users, so it may be the name of an inherited property such as
 * `constructor`.
 */
export function findOwnProperty<T>(
  table: Readonly<Partial<Record<string, T>>>,
  name: string,
): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
