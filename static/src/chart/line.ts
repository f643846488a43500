/** The way of a line through its samples, with no more corners than a screen can show. */

/** What is drawn upon: `Path2D`, or a stand-in that remembers. */
export type Path = Pick<Path2D, 'moveTo' | 'lineTo' | 'closePath'>;

/** How times and values become places. */
export interface Scales {
  x: (at_ms: number) => number;
  y: (value: number) => number;
}

/**
 * Nobody sees that a line is so far beside its sample: painting takes as long as the corners are
 * many.
 */
const INVISIBLE_PX = 0.3;

/**
 * Adds the line through `values` from place `begin` up to `end`. Samples that fall on one column of
 * the screen become one stroke from the lowest to the highest, so that a spike is never lost. A
 * hole, which is NaN, ends the stroke. With `baseline`, each stroke is closed down to it, to be
 * filled.
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
  const stroke = new Stroke(path);
  let column = NaN;
  let first = 0;
  let low = 0;
  let high = 0;
  let last = 0;
  const leave = (): void => {
    if (!Number.isNaN(column)) {
      stroke.pass(column, first, low, high, last);
    }
    column = NaN;
  };
  for (let i = begin; i < end; i += 1) {
    const value = values[i] ?? NaN;
    if (Number.isNaN(value)) {
      leave();
      stroke.end(baseline);
      continue;
    }
    const x = Math.round(scales.x(times_ms[i] ?? 0));
    const y = scales.y(value);
    if (x === column) {
      low = Math.min(low, y);
      high = Math.max(high, y);
    } else {
      leave();
      column = x;
      first = low = high = y;
    }
    last = y;
  }
  leave();
  stroke.end(baseline);
}

/**
 * A line without holes. A point is left out while a straight line from the last corner passes by it
 * (swinging door).
 */
class Stroke {
  private begun = NaN;
  /** The last corner. */
  private cornerX = 0;
  private cornerY = 0;
  /** Where the line has got to; the path ends at the last corner. */
  private x = NaN;
  private y = 0;
  /** The slopes of lines from the last corner that pass by all points since. */
  private least = -Infinity;
  private most = Infinity;

  constructor(private readonly path: Path) {}

  /** Goes through a column of the screen, and all that is in it. */
  pass(x: number, first: number, low: number, high: number, last: number): void {
    if (Number.isNaN(this.begun)) {
      this.path.moveTo(x, first);
      this.begun = x;
      this.turn(x, first);
      this.upAndDown(x, low, high, last);
    } else if (
      low >= Math.min(this.y, last) - INVISIBLE_PX &&
      high <= Math.max(this.y, last) + INVISIBLE_PX
    ) {
      // Nothing in it lies beside the way from the column before.
      this.to(x, last);
    } else {
      this.to(x, first);
      this.corner();
      this.upAndDown(x, low, high, last);
    }
  }

  end(baseline: number | null): void {
    if (Number.isNaN(this.begun)) {
      return;
    }
    this.corner();
    if (baseline !== null) {
      this.path.lineTo(this.x, baseline);
      this.path.lineTo(this.begun, baseline);
      this.path.closePath();
    } else if (this.x === this.begun) {
      // A sample between two holes is a point.
      this.path.lineTo(this.x + 0.01, this.y);
    }
    this.begun = NaN;
  }

  /** To both extremes of a column, the farther from its last sample first. */
  private upAndDown(x: number, low: number, high: number, last: number): void {
    for (const y of last - low > high - last ? [low, high, last] : [high, low, last]) {
      if (Math.abs(y - this.y) > INVISIBLE_PX) {
        this.path.lineTo(x, y);
        this.turn(x, y);
      }
    }
  }

  private to(x: number, y: number): void {
    let slope = (y - this.cornerY) / (x - this.cornerX);
    if (slope < this.least || slope > this.most) {
      this.corner();
      slope = (y - this.cornerY) / (x - this.cornerX);
    }
    const slack = INVISIBLE_PX / (x - this.cornerX);
    this.least = Math.max(this.least, slope - slack);
    this.most = Math.min(this.most, slope + slack);
    this.x = x;
    this.y = y;
  }

  /** Draws up to where the line has got to. */
  private corner(): void {
    if (this.x !== this.cornerX) {
      this.path.lineTo(this.x, this.y);
    }
    this.turn(this.x, this.y);
  }

  private turn(x: number, y: number): void {
    this.x = this.cornerX = x;
    this.y = this.cornerY = y;
    this.least = -Infinity;
    this.most = Infinity;
  }
}
