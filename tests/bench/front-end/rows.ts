/** One line per figure: what it is, the target, what was measured. */

const missed: string[] = [];

/** Prints a figure; `ok` is `null` where it has no target. */
export function row(
  what: string,
  target: string,
  measured: string,
  ok: boolean | null = null,
): void {
  const mark = ok === null ? '    ' : ok ? 'ok  ' : 'OVER';
  console.log(`  ${mark}  ${what.padEnd(66)} ${target.padEnd(18)} ${measured}`);
  if (ok === false) {
    missed.push(what);
  }
}

/** Says how it was measured, or why not. */
export function note(text: string): void {
  console.log(`          ${text}`);
}

/** What was over its target so far. */
export function missedTargets(): readonly string[] {
  return missed;
}
