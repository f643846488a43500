import { describe, expect, it } from 'vitest';

import { Timeline, type SeriesSource } from '../../lib/timeline';
import { PERCENT } from '../unit';
import { Crowd, MEDIAN, outliersOf } from './crowd';
import type { PlotLine } from './plots';

const SPAN = { from_ms: 0, to_ms: 100_000 };

function line(id: number, now: number): PlotLine {
  const series = `s${id}`;
  return { id: String(id), label: String(id), color: id, series, field: '', now };
}

/** Returns a source with one second per row. Each row contains the values of all lines. */
function source(rows: readonly (readonly number[])[]): Timeline {
  const timeline = new Timeline(100);
  rows.forEach((values, i) => {
    const moment = new Map(values.map((value, id) => [`s${id}`, value]));
    timeline.push(1000 * (i + 1), moment, 2000);
  });
  return timeline;
}

function linesOf(
  values: readonly number[],
  hidden: readonly string[] = [],
  chosen: readonly (string | null)[] = [],
): PlotLine[] {
  const lines = values.map((value, id) => line(id, value));
  const plot = { lines, unit: PERCENT, limit: null };
  return new Crowd().linesOf(plot, source([values, values]), SPAN, new Set(hidden), chosen);
}

const ids = (lines: readonly PlotLine[]): string[] => lines.map(({ id }) => id);
const ELEVEN = Array.from({ length: 11 }, (_, i) => 40 + i);

describe('crowd of lines', () => {
  it('crowd has median and band of most values', () => {
    const [median] = linesOf(ELEVEN);
    expect([median?.id, median?.now]).toEqual([MEDIAN, 45]);
    expect([...(median?.own?.values ?? [])]).toEqual([45, 45]);
    const { low, high } = median?.own?.extremes ?? {};
    expect([low?.[0], high?.[0]]).toEqual([41, 49]);
  });

  it('crowd without values has no median', () => {
    const [median] = linesOf([NaN, NaN]);
    expect(median?.own?.values[0]).toBeNaN();
  });

  it('crowd shows outliers and selected lines', () => {
    expect(ids(linesOf([...ELEVEN, 90]))).toEqual([MEDIAN, '11']);
    expect(ids(linesOf([...ELEVEN, 90], [], ['3', null]))).toEqual([MEDIAN, '3', '11']);
    expect(ids(linesOf(ELEVEN))).toEqual([MEDIAN]);
  });

  it('few visible lines are all shown', () => {
    const others = ELEVEN.map((_, id) => String(id)).filter((id) => id !== '4');
    expect(ids(linesOf(ELEVEN, others))).toEqual([MEDIAN, '4']);
  });

  it('quantiles are only computed for new times', () => {
    const crowd = new Crowd();
    let reads = 0;
    const counted = (values: number[]): Float64Array =>
      new Proxy(Float64Array.from(values), {
        get: (target, name) => {
          reads += /^\d+$/.test(String(name)) ? 1 : 0;
          return Reflect.get(target, name) as unknown;
        },
      });
    const times = (...all: number[]): Float64Array => Float64Array.from(all);
    crowd.quantilesOf(times(1, 2, 3), [counted([5, 6, 7])], 'a');
    expect(reads).toBe(3);
    const next = crowd.quantilesOf(times(2, 3, 4), [counted([6, 7, 8])], 'a');
    expect([reads, ...next.median]).toEqual([4, 6, 7, 8]);
    expect(crowd.quantilesOf(times(2, 3, 4), [counted([6, 7, 8])], 'a')).toBe(next);
    crowd.quantilesOf(times(2, 3, 4), [counted([6, 7, 9])], 'b');
    expect(reads).toBe(7);
  });
});

describe('outliers', () => {
  const outliers = (...rows: number[][]): number[] => {
    const columns = rows.map((values) => Float64Array.from(values));
    const known = new Crowd().quantilesOf(Float64Array.of(1, 2, 3, 4), columns, '');
    return outliersOf(columns, known, SPAN, 100);
  };
  const flat = (value: number): number[] => [value, value, value, value];
  const usual = ELEVEN.map(flat);

  it('outlier is outside at half of the times', () => {
    expect(outliers(...usual, [90, 90, 45, 45])).toEqual([11]);
    expect(outliers(...usual, [90, 45, 45, 45])).toEqual([]);
    expect(outliers(...usual, [90, NaN, NaN, NaN])).toEqual([11]);
  });

  it('farthest outlier comes first', () => {
    const many = [...usual, ...usual, ...usual];
    expect(outliers(...many, flat(80), flat(0))).toEqual([34, 33]);
    expect(outliers(...Array.from({ length: 11 }, () => flat(50)), flat(53))).toEqual([]);
  });
});

it('quantiles of different lines are not mixed', () => {
  const crowd = new Crowd();
  const of = (timeline: SeriesSource, ...all: PlotLine[]): number | undefined =>
    crowd.linesOf({ lines: all, unit: PERCENT, limit: null }, timeline, SPAN, new Set(), [])[0]?.own
      ?.values[0];
  const timeline = source([[1, 2, 3]]);
  expect(of(timeline, line(0, 1), line(1, 2))).toBe(1.5);
  expect(of(timeline, line(1, 2), line(2, 3))).toBe(2.5);
});
