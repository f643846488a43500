/** What the lines of a chart have at one moment, in the order in which a tooltip lists them. */

import type { Valued } from './legend';

export interface TooltipValues<T extends Valued> {
  /** The highest first. */
  rows: readonly T[];
  /** How many lines have a value that is not among `rows`. */
  more: number;
}

/** The highest `most` values, with that of the line `nearest` among them wherever it stands. */
export function tooltipValues<T extends Valued>(
  lines: readonly T[],
  nearest: string | null,
  most: number,
): TooltipValues<T> {
  const known = lines.filter(({ value }) => !Number.isNaN(value)).sort((a, b) => b.value - a.value);
  const place = known.findIndex(({ id }) => id === nearest);
  const rows = known.filter((_, i) => i < (place < most ? most : most - 1) || i === place);
  return { rows, more: known.length - rows.length };
}

/** The line whose value is nearest to `value`, and no further away than `within`. */
export function nearestLine(
  lines: readonly Valued[],
  value: number,
  within: number,
): string | null {
  let nearest: string | null = null;
  let least = within;
  for (const line of lines) {
    const distance = Math.abs(line.value - value);
    if (distance <= least) {
      least = distance;
      nearest = line.id;
    }
  }
  return nearest;
}
