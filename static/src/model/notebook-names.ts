/**
 * The names of notebooks: as much of the end of each path as tells it from the others. The terminal has the same rule;
 * `tests/notebook-names.json` has the cases that both are tested with.
 */

/** The last part of the path of a console's session: what JupyterLab asks for, and what Jupyter makes of it. */
const CONSOLE = /^(?:console-(\d+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|Console (\d+))$/;

/** Whether a session's path is that of a console, whose kernel belongs to no notebook. */
export function isConsolePath(path: string): boolean {
  return CONSOLE.test(path.split('/').at(-1) ?? '');
}

/** Returns by path the shortest name that no other of these paths has. */
export function notebookNames(paths: Iterable<string>): Map<string, string> {
  const distinct = new Map([...new Set(paths)].map((path) => [path, endsOf(path)]));
  const counts = new Map<string, number>();
  for (const end of [...distinct.values()].flat()) {
    counts.set(end, (counts.get(end) ?? 0) + 1);
  }
  return new Map([...distinct].map(([path, ends]) => [path, ends.find((end) => counts.get(end) === 1) ?? path]));
}

/** The ends of a path that may be its name, the shortest first, and last all of it. */
function endsOf(path: string): string[] {
  const shown = whole(path);
  const parts = shown.split('/').filter((part) => part !== '');
  const ends = parts.map((_, index) => parts.slice(parts.length - 1 - index).join('/'));
  return [...ends, ...(ends.at(-1) === shown ? [] : [shown])];
}

/** The path, with a console as JupyterLab shows it. */
function whole(path: string): string {
  const parts = path.split('/');
  const [, asked, made] = CONSOLE.exec(parts.at(-1) ?? '') ?? [];
  const number = asked ?? made;
  return number === undefined ? path : [...parts.slice(0, -1), `Console ${number}`].join('/');
}
