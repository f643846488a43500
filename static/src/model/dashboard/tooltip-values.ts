/** The values that a tooltip shows, in its order. */

import type { ValuedLine } from './legend';

export interface TooltipValues<T extends ValuedLine> {
  /** The rows, with the highest value first. */
  rows: readonly T[];
  /** The number of lines with a value that are not in `rows`. */
  more: number;
}

/**
 * Returns the lines with the highest values, at most `most`. The line `nearest` is always included.
 */
export function tooltipValues<T extends ValuedLine>(
  lines: readonly T[],
  nearest: string | null,
  most: number,
): TooltipValues<T> {
  const known = lines.filter(({ value }) => !Number.isNaN(value)).sort((a, b) => b.value - a.value);
  const place = known.findIndex(({ id }) => id === nearest);
  const rows = known.filter((_, i) => i < (place < most ? most : most - 1) || i === place);
  return { rows, more: known.length - rows.length };
}

/** Returns the line whose value is nearest to `value`, or `null` if none is within `within`. */
export function nearestLine(
  lines: readonly ValuedLine[],
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
