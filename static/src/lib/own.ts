/**
 * What a table has under a name that strangers chose: nothing that all objects have, as
 * `constructor`.
 */
export function own<T>(table: Readonly<Partial<Record<string, T>>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
