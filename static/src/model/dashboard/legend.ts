/** The state of a chart's legend: hidden lines, and the named lines of a crowded chart. */

/**
 * Hides all lines of a legend except `id`. If the others are already hidden, shows all of them
 * again.
 */
export function isolateLine(
  hidden: readonly string[],
  id: string,
  legend: readonly string[],
): string[] {
  const others = legend.filter((other) => other !== id);
  const elsewhere = hidden.filter((other) => !legend.includes(other));
  const isAlone = !hidden.includes(id) && others.every((other) => hidden.includes(other));
  return isAlone ? elsewhere : [...elsewhere, ...others];
}

/**
 * Hides or shows the line `id`. If this would hide all lines of the legend, all are shown again.
 */
export function toggleLine(
  hidden: readonly string[],
  id: string,
  legend: readonly string[],
): string[] {
  const next = hidden.includes(id) ? hidden.filter((other) => other !== id) : [...hidden, id];
  return legend.every((other) => next.includes(other))
    ? next.filter((other) => !legend.includes(other))
    : next;
}

/** A line and its value at the displayed time; NaN if it has none. */
export interface ValuedLine {
  id: string;
  value: number;
}

/**
 * The share of the axis by which another line must exceed the current highest or lowest line to
 * replace it.
 */
const MIN_LEAD = 0.02;

/**
 * Finds the lines with the highest and the lowest value. The current lines are kept while other
 * lines have about the same value, so that the labels do not flicker.
 */
export class ExtremeLines {
  private highest: string | null = null;
  private lowest: string | null = null;

  /**
   * Returns the IDs of the highest and the lowest line. If they are the same line, returns one ID;
   * if no line has a value, returns none. `range` is the length of the axis.
   */
  findIds(lines: readonly ValuedLine[], range: number): string[] {
    const known = lines.filter(({ value }) => !Number.isNaN(value));
    this.highest = findExtreme(known, this.highest, range * MIN_LEAD, 1);
    this.lowest = findExtreme(known, this.lowest, range * MIN_LEAD, -1);
    return [...new Set([this.highest, this.lowest])].filter((id) => id !== null);
  }
}

function findExtreme(
  lines: readonly ValuedLine[],
  before: string | null,
  lead: number,
  sign: 1 | -1,
): string | null {
  let best: ValuedLine | null = null;
  for (const line of lines) {
    best = best === null || sign * line.value > sign * best.value ? line : best;
  }
  const kept = lines.find(({ id }) => id === before);
  return best !== null && kept !== undefined && sign * (best.value - kept.value) <= lead
    ? kept.id
    : (best?.id ?? null);
}
