/**
 * Distinct names of notebooks: for each path, the shortest end that no other path has. The terminal
 * has the same rule, and `tests/notebook-names.json` tests both.
 */

/**
 * Matches the last part of a console's session path, both as JupyterLab requests it and as Jupyter
 * renames it.
 */
const CONSOLE = /^(?:console-(\d+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|Console (\d+))$/;

/** Returns whether a session's path belongs to a console, whose kernel has no notebook. */
export function isConsolePath(path: string): boolean {
  return CONSOLE.test(path.split('/').at(-1) ?? '');
}

/** Returns the shortest distinct name of each path. */
export function notebookNames(paths: Iterable<string>): Map<string, string> {
  const distinct = new Map([...new Set(paths)].map((path) => [path, listPathEnds(path)]));
  const counts = new Map<string, number>();
  for (const end of [...distinct.values()].flat()) {
    counts.set(end, (counts.get(end) ?? 0) + 1);
  }
  return new Map(
    [...distinct].map(([path, ends]) => [path, ends.find((end) => counts.get(end) === 1) ?? path]),
  );
}

/**
 * Returns the ends of a path that can serve as its name, from the shortest end to the whole path.
 */
function listPathEnds(path: string): string[] {
  const shown = formatPath(path);
  const parts = shown.split('/').filter((part) => part !== '');
  const ends = parts.map((_, index) => parts.slice(parts.length - 1 - index).join('/'));
  return [...ends, ...(ends.at(-1) === shown ? [] : [shown])];
}

/** Returns the whole path, with the console's name as in JupyterLab. */
function formatPath(path: string): string {
  const parts = path.split('/');
  const [, asked, made] = CONSOLE.exec(parts.at(-1) ?? '') ?? [];
  const number = asked ?? made;
  return number === undefined ? path : [...parts.slice(0, -1), `Console ${number}`].join('/');
}
