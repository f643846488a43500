/** What a legend hides, and what one of many lines names. */

/** Only the line `id` of those in a legend; all of them again where it already was alone. */
export function isolated(
  hidden: readonly string[],
  id: string,
  legend: readonly string[],
): string[] {
  const others = legend.filter((other) => other !== id);
  const elsewhere = hidden.filter((other) => !legend.includes(other));
  const isAlone = !hidden.includes(id) && others.every((other) => hidden.includes(other));
  return isAlone ? elsewhere : [...elsewhere, ...others];
}

/** With or without the line `id`; without any of a legend, all of them are shown again. */
export function toggledLine(
  hidden: readonly string[],
  id: string,
  legend: readonly string[],
): string[] {
  const next = hidden.includes(id) ? hidden.filter((other) => other !== id) : [...hidden, id];
  return legend.every((other) => next.includes(other))
    ? next.filter((other) => !legend.includes(other))
    : next;
}

/** A line and its value at the moment that is shown; NaN where it has none. */
export interface Valued {
  id: string;
  value: number;
}

/** Whoever is named stays so until another passes it by this share of the axis. */
const LEAD = 0.02;

/**
 * Finds the lines with the highest and the lowest value, and keeps to them while others are about
 * equal.
 */
export class Extremes {
  private highest: string | null = null;
  private lowest: string | null = null;

  /**
   * The ids of both; one where they are the same, none where there are no values. `range` is that
   * of the axis.
   */
  of(lines: readonly Valued[], range: number): string[] {
    const known = lines.filter(({ value }) => !Number.isNaN(value));
    this.highest = foremost(known, this.highest, range * LEAD, 1);
    this.lowest = foremost(known, this.lowest, range * LEAD, -1);
    return [...new Set([this.highest, this.lowest])].filter((id) => id !== null);
  }
}

function foremost(
  lines: readonly Valued[],
  before: string | null,
  lead: number,
  sign: 1 | -1,
): string | null {
  let best: Valued | null = null;
  for (const line of lines) {
    best = best === null || sign * line.value > sign * best.value ? line : best;
  }
  const kept = lines.find(({ id }) => id === before);
  return best !== null && kept !== undefined && sign * (best.value - kept.value) <= lead
    ? kept.id
    : (best?.id ?? null);
}
