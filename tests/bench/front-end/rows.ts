/** The names of the figures that missed their targets. */

const missed: string[] = [];

/** Prints a figure with its target and the measured value; `ok` is `null` if there is no target. */
export function printRow(
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

/** Prints a note about the method of a measurement, or the reason why it was skipped. */
export function printNote(text: string): void {
  console.log(`          ${text}`);
}

export function missedTargets(): readonly string[] {
  return missed;
}
