import { describe, expect, it } from 'vitest';

import { Timeline, type SeriesSource } from '../../lib/timeline';
import { PERCENT } from '../unit';
import { LineCrowd, MEDIAN_ID, findOutlierIndexes } from './crowd';
import type { PlotLine } from './plots';

const SPAN = { from_ms: 0, to_ms: 100_000 };

function makeLine(id: number, now: number): PlotLine {
  const series = `s${id}`;
  return { id: String(id), label: String(id), color: id, series, field: '', now };
}

/** Returns a source with one second per row. Each row contains the values of all lines. */
function makeTimeline(rows: readonly (readonly number[])[]): Timeline {
  const timeline = new Timeline(100);
  rows.forEach((values, i) => {
    const moment = new Map(values.map((value, id) => [`s${id}`, value]));
    timeline.push(1000 * (i + 1), moment, 2000);
  });
  return timeline;
}

function selectCrowdLines(
  values: readonly number[],
  hidden: readonly string[] = [],
  chosen: readonly (string | null)[] = [],
): PlotLine[] {
  const lines = values.map((value, id) => makeLine(id, value));
  const plot = { lines, unit: PERCENT, limit: null };
  return new LineCrowd().selectLines(
    plot,
    makeTimeline([values, values]),
    SPAN,
    new Set(hidden),
    chosen,
  );
}

const ids = (lines: readonly PlotLine[]): string[] => lines.map(({ id }) => id);
const ELEVEN = Array.from({ length: 11 }, (_, i) => 40 + i);

describe('crowd of lines', () => {
  it('many lines become median and band', () => {
    const [median] = selectCrowdLines(ELEVEN);
    expect([median?.id, median?.now]).toEqual([MEDIAN_ID, 45]);
    expect([...(median?.own?.values ?? [])]).toEqual([45, 45]);
    const { low, high } = median?.own?.extremes ?? {};
    expect([low?.[0], high?.[0]]).toEqual([41, 49]);
  });

  it('lines without values have no median', () => {
    const [median] = selectCrowdLines([NaN, NaN]);
    expect(median?.own?.values[0]).toBeNaN();
  });

  it('outliers and selected lines are shown besides median', () => {
    expect(ids(selectCrowdLines([...ELEVEN, 90]))).toEqual([MEDIAN_ID, '11']);
    expect(ids(selectCrowdLines([...ELEVEN, 90], [], ['3', null]))).toEqual([MEDIAN_ID, '3', '11']);
    expect(ids(selectCrowdLines(ELEVEN))).toEqual([MEDIAN_ID]);
  });

  it('all lines are shown if few are visible', () => {
    const others = ELEVEN.map((_, id) => String(id)).filter((id) => id !== '4');
    expect(ids(selectCrowdLines(ELEVEN, others))).toEqual([MEDIAN_ID, '4']);
  });

  it('quantiles are only computed for new times', () => {
    const crowd = new LineCrowd();
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
    const known = new LineCrowd().quantilesOf(Float64Array.of(1, 2, 3, 4), columns, '');
    return findOutlierIndexes(columns, known, SPAN, 100);
  };
  const flat = (value: number): number[] => [value, value, value, value];
  const usual = ELEVEN.map(flat);

  it('line outside band half the time is outlier', () => {
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
  const crowd = new LineCrowd();
  const of = (timeline: SeriesSource, ...all: PlotLine[]): number | undefined =>
    crowd.selectLines({ lines: all, unit: PERCENT, limit: null }, timeline, SPAN, new Set(), [])[0]
      ?.own?.values[0];
  const timeline = makeTimeline([[1, 2, 3]]);
  expect(of(timeline, makeLine(0, 1), makeLine(1, 2))).toBe(1.5);
  expect(of(timeline, makeLine(1, 2), makeLine(2, 3))).toBe(2.5);
});
