/** How fast a series grows. */

export interface Slope {
  /** Per millisecond. */
  slope: number;
  /** The share of the changes that a straight line explains, 0 to 1. */
  steadiness: number;
  spanned_ms: number;
}

/** A straight line through the newest `span_ms`, by least squares, as far back as there is no hole, which is NaN. */
export function slopeOf(times_ms: ArrayLike<number>, values: ArrayLike<number>, span_ms: number): Slope | null {
  const end = times_ms[times_ms.length - 1] ?? 0;
  let n = 0;
  let sumX = 0;
  let sumY = 0;
  let sumXX = 0;
  let sumXY = 0;
  let sumYY = 0;
  let spanned_ms = 0;
  for (let i = times_ms.length - 1; i >= 0; i -= 1) {
    const x = (times_ms[i] ?? 0) - end;
    const y = values[i] ?? NaN;
    if (x < -span_ms || Number.isNaN(y)) {
      break;
    }
    spanned_ms = -x;
    n += 1;
    sumX += x;
    sumY += y;
    sumXX += x * x;
    sumXY += x * y;
    sumYY += y * y;
  }
  const spreadX = n * sumXX - sumX * sumX;
  const spreadY = n * sumYY - sumY * sumY;
  const together = n * sumXY - sumX * sumY;
  if (n < 3 || spreadX <= 0) {
    return null;
  }
  const steadiness = spreadY <= 0 ? 1 : (together * together) / (spreadX * spreadY);
  return { slope: together / spreadX, steadiness, spanned_ms };
}
