/** Returns a percentile of the values: `percent` % of the values are not greater than it. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))];
  if (value === undefined) {
    throw new Error('nothing was measured');
  }
  return value;
}

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Returns the number with about three significant digits. */
export function formatNumber(value: number): string {
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
}

export function sleep(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}
