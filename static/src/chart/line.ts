/** The way of a line through its samples, with no more corners than a screen can show. */

/** What is drawn upon: `Path2D`, or a stand-in that remembers. */
export type Path = Pick<Path2D, 'moveTo' | 'lineTo' | 'closePath'>;

/** How times and values become places. */
export interface Scales {
  x: (at_ms: number) => number;
  y: (value: number) => number;
}

/**
 * Adds the line through `values` from place `begin` up to `end`. Samples that fall on one column of the screen become
 * one stroke from the lowest to the highest, so that a spike is never lost. A hole, which is NaN, ends the stroke.
 * With `ground`, each stroke is closed down to it, to be filled.
 */
export function addLine(
  path: Path,
  times_ms: ArrayLike<number>,
  values: ArrayLike<number>,
  begin: number,
  end: number,
  scales: Scales,
  baseline: number | null = null,
): void {
  let first = NaN;
  let column = NaN;
  let low = 0;
  let high = 0;
  let last = 0;
  const leave = (): void => {
    if (low !== high) {
      path.lineTo(column, low);
      path.lineTo(column, high);
      path.lineTo(column, last);
    }
  };
  const stop = (): void => {
    if (Number.isNaN(first)) {
      return;
    }
    leave();
    if (baseline !== null) {
      path.lineTo(column, baseline);
      path.lineTo(first, baseline);
      path.closePath();
    } else if (first === column && low === high) {
      // A sample between two holes is a point.
      path.lineTo(column + 0.01, last);
    }
    first = NaN;
  };
  for (let i = begin; i < end; i += 1) {
    const value = values[i] ?? NaN;
    if (Number.isNaN(value)) {
      stop();
      continue;
    }
    const x = Math.round(scales.x(times_ms[i] ?? 0));
    const y = scales.y(value);
    if (Number.isNaN(first)) {
      path.moveTo(x, y);
      first = x;
    } else if (x === column) {
      low = Math.min(low, y);
      high = Math.max(high, y);
      last = y;
      continue;
    } else {
      leave();
      path.lineTo(x, y);
    }
    column = x;
    low = high = last = y;
  }
  stop();
}
