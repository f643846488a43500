/** The values of a chart as CSV. */

import { formatCsv, quoteCell } from '../../lib/csv';

export interface CsvColumn {
  name: string;
  times_ms: ArrayLike<number>;
  values: ArrayLike<number>;
}

/**
 * Returns CSV with a row for each time from `from_ms` to `to_ms` at which a column has a value.
 * Times are in UTC.
 */
export function csvOf(columns: readonly CsvColumn[], from_ms: number, to_ms: number): string {
  const rows = new Map<number, (number | null)[]>();
  columns.forEach(({ times_ms, values }, column) => {
    for (let i = 0; i < times_ms.length; i += 1) {
      const at_ms = Math.round(times_ms[i] ?? NaN);
      const value = values[i] ?? NaN;
      if (at_ms >= from_ms && at_ms <= to_ms && !Number.isNaN(value)) {
        const row = rows.get(at_ms) ?? Array<number | null>(columns.length).fill(null);
        row[column] = value;
        rows.set(at_ms, row);
      }
    }
  });
  const head = ['time', ...columns.map(({ name }) => quoteCell(name))];
  const body = [...rows]
    .sort(([a], [b]) => a - b)
    .map(([at_ms, row]) => [new Date(at_ms).toISOString(), ...row]);
  return formatCsv([head, ...body]);
}
