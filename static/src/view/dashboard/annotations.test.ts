import { describe, expect, it } from 'vitest';

import type { Band } from '../../chart/content';
import type { ConditionSpan } from '../../model/dashboard/condition-spans';
import type { Palette } from '../palette';
import { AnnotationSet, notesAt } from './annotations';

const LEVELS = { none: 'gray', notice: 'blue', warning: 'yellow', critical: 'red' };
const WINDOW = {
  times_ms: new Float64Array(),
  revision: 0,
  from_ms: 1000,
  to_ms: 2000,
  gap_ms: 100,
};

function band(from_ms: number, to_ms: number, label: string): Band {
  return { from_ms, to_ms, label, color: 'green' };
}

function span(
  from_ms: number,
  to_ms: number,
  level: ConditionSpan['level'],
  text: string,
): ConditionSpan {
  return { key: text, from_ms, to_ms, level, text };
}

const SET = new AnnotationSet(
  new Map([
    [0, [band(1000, 1500, '[1]'), band(0, 900, '[0]')]],
    [1, [band(1010, 1600, '[1]'), band(1700, 1800, '[2]')]],
    [2, [band(1000, 2000, 'of another')]],
  ]),
  new Map([[1, [span(1200, 1400, 'critical', 'hot'), span(0, 3000, 'notice', 'capped')]]]),
  {
    byGpu: new Map([[1, [{ at_ms: 1300, color: 'red', label: 'Xid 79' }]]]),
    ofAll: [{ at_ms: 1950, color: 'white', label: 'epoch 3' }],
  },
  [0, 1],
  { levels: LEVELS } as Palette,
  WINDOW,
);

describe('the annotations', () => {
  it('of a GPU are its own, as far as they are shown, with the gravest condition in front', () => {
    expect(SET.of(0).bands.map(({ label }) => label)).toEqual(['[1]']);
    expect(SET.of(1).bars.map(({ label, color }) => [label, color])).toEqual([
      ['capped', 'blue'],
      ['hot', 'red'],
    ]);
  });

  it('of several GPUs are theirs, a cell on both is one, and what is ordinary is left out', () => {
    const { bands, bars, markers } = SET.of(null);
    expect(bands).toEqual([band(1000, 1600, '[1]'), band(1700, 1800, '[2]')]);
    expect(bars.map(({ label }) => label)).toEqual(['GPU 1: hot']);
    expect(markers.map(({ label }) => label)).toEqual(['GPU 1: Xid 79', 'epoch 3']);
    expect(SET.machine).toMatchObject({ bands, bars: [], markers: [{ label: 'epoch 3' }] });
  });

  it('of a moment are events near it, and what went on', () => {
    const notes = (at_ms: number): string[] =>
      notesAt(at_ms, SET.of(1), WINDOW).map(({ label }) => label);
    expect(notes(1310)).toEqual(['Xid 79', 'capped', 'hot', '[1]']);
    expect(notes(1650)).toEqual(['capped']);
    expect(notes(1940)).toEqual(['epoch 3', 'capped']);
    const cells = ['a.ipynb [1]', 'b.ipynb [1]', 'a.ipynb [1]'].map((title) => ({
      ...band(0, 9, '[1]'),
      title,
    }));
    const both = notesAt(5, { bands: cells, bars: [], markers: [] }, WINDOW);
    expect(both.map(({ title }) => title)).toEqual(['a.ipynb [1]', 'b.ipynb [1]']);
  });
});
