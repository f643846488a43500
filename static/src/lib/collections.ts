/** Helpers for collections: grouping, selection, and safe access to the properties of a table. */

/** Groups values by key in their order, like the newer `Map.groupBy`. */
export function groupBy<Key, T>(all: Iterable<T>, keyOf: (one: T) => Key): Map<Key, T[]> {
  const groups = new Map<Key, T[]>();
  for (const one of all) {
    const key = keyOf(one);
    const group = groups.get(key);
    if (group === undefined) {
      groups.set(key, [one]);
    } else {
      group.push(one);
    }
  }
  return groups;
}

/** Returns the items with these IDs, in the order of `ids`. */
export function selectByIds<T extends { id: string }>(
  all: readonly T[],
  ids: readonly string[],
): T[] {
  return ids.flatMap((id) => all.filter((one) => one.id === id));
}

/**
 * Returns the property `name` of `table`, or `undefined` if `table` itself has no such property.
 * Inherited properties are ignored, because the name comes from other users and could be, for
 * example, `constructor`.
 */
export function findOwnProperty<T>(
  table: Readonly<Partial<Record<string, T>>>,
  name: string,
): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
