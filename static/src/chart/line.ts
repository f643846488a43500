/** The path of a line through its samples, with no more corners than a screen can show. */

/** The target of a line: `Path2D`, or a substitute that records the steps. */
export type Path = Pick<Path2D, 'moveTo' | 'lineTo' | 'closePath'>;

/** Conversions of times and values to positions in pixels. */
export interface Scales {
  x: (at_ms: number) => number;
  y: (value: number) => number;
}

/**
 * A sample is omitted if it is at most this far from the line. Such a distance is too small to see,
 * and a line with fewer corners is faster to draw.
 */
const MAX_INVISIBLE_PX = 0.3;

/**
 * Adds the line through `values` from index `begin` up to `end`. The samples of a pixel column
 * become one vertical stroke from the lowest to the highest value, so that no spike is lost. NaN is
 * a gap and ends the line. With `baseline`, each piece of the line is closed down to the baseline,
 * so that it can be filled.
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
      stroke.addColumn(column, first, low, high, last);
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
 * A line without gaps. A point is left out if a straight line that starts at the last corner passes
 * close to the point (swinging door algorithm).
 */
class Stroke {
  private begun = NaN;
  /** The position of the last corner. */
  private cornerX = 0;
  private cornerY = 0;
  /** The current end of the line. The path itself ends at the last corner. */
  private x = NaN;
  private y = 0;
  /**
   * A straight line from the last corner passes close to all later points if its slope is between
   * these two values.
   */
  private least = -Infinity;
  private most = Infinity;

  constructor(private readonly path: Path) {}

  /** Adds a pixel column with all its values. */
  addColumn(x: number, first: number, low: number, high: number, last: number): void {
    if (Number.isNaN(this.begun)) {
      this.path.moveTo(x, first);
      this.begun = x;
      this.setCorner(x, first);
      this.drawExtremes(x, low, high, last);
    } else if (
      low >= Math.min(this.y, last) - MAX_INVISIBLE_PX &&
      high <= Math.max(this.y, last) + MAX_INVISIBLE_PX
    ) {
      // All values of the column are between the previous end and the last value.
      this.extendTo(x, last);
    } else {
      this.extendTo(x, first);
      this.drawPendingSegment();
      this.drawExtremes(x, low, high, last);
    }
  }

  end(baseline: number | null): void {
    if (Number.isNaN(this.begun)) {
      return;
    }
    this.drawPendingSegment();
    if (baseline !== null) {
      this.path.lineTo(this.x, baseline);
      this.path.lineTo(this.begun, baseline);
      this.path.closePath();
    } else if (this.x === this.begun) {
      // A single sample between two gaps is drawn as a point.
      this.path.lineTo(this.x + 0.01, this.y);
    }
    this.begun = NaN;
  }

  /**
   * Draws the lowest and the highest value of a column. The one that is farther from the last
   * sample is drawn first.
   */
  private drawExtremes(x: number, low: number, high: number, last: number): void {
    for (const y of last - low > high - last ? [low, high, last] : [high, low, last]) {
      if (Math.abs(y - this.y) > MAX_INVISIBLE_PX) {
        this.path.lineTo(x, y);
        this.setCorner(x, y);
      }
    }
  }

  private extendTo(x: number, y: number): void {
    let slope = (y - this.cornerY) / (x - this.cornerX);
    if (slope < this.least || slope > this.most) {
      this.drawPendingSegment();
      slope = (y - this.cornerY) / (x - this.cornerX);
    }
    const slack = MAX_INVISIBLE_PX / (x - this.cornerX);
    this.least = Math.max(this.least, slope - slack);
    this.most = Math.min(this.most, slope + slack);
    this.x = x;
    this.y = y;
  }

  /** Draws the line up to its current end. */
  private drawPendingSegment(): void {
    if (this.x !== this.cornerX) {
      this.path.lineTo(this.x, this.y);
    }
    this.setCorner(this.x, this.y);
  }

  private setCorner(x: number, y: number): void {
    this.x = this.cornerX = x;
    this.y = this.cornerY = y;
    this.least = -Infinity;
    this.most = Infinity;
  }
}
