import { describe, expect, it } from 'vitest';

import type { Band } from '../../chart/content';
import type { ConditionSpan } from '../../model/dashboard/condition-spans';
import type { Palette } from '../palette';
import { annotationsOf, notesAt } from './annotations';

const LEVELS = { none: 'gray', notice: 'blue', warning: 'yellow', critical: 'red' };
const SPAN = { from_ms: 1000, to_ms: 2000 };

function makeBand(from_ms: number, to_ms: number, label: string): Band {
  return { from_ms, to_ms, label, color: 'green' };
}

function makeSpan(
  from_ms: number,
  to_ms: number,
  level: ConditionSpan['level'],
  text: string,
): ConditionSpan {
  return { key: text, from_ms, to_ms, level, text };
}

function labelsOf(all: readonly { label: string }[]): string[] {
  return all.map(({ label }) => label);
}

const ANNOTATIONS = annotationsOf(
  [0, 1],
  new Map([
    [0, [makeBand(1000, 1500, '[1]'), makeBand(0, 900, '[0]')]],
    [1, [makeBand(1010, 1600, '[1]'), makeBand(1700, 1800, '[2]')]],
    [2, [makeBand(1000, 2000, 'of another')]],
  ]),
  new Map([
    [0, [makeSpan(1500, 1600, 'warning', 'warm')]],
    [1, [makeSpan(1200, 1400, 'critical', 'hot'), makeSpan(0, 3000, 'notice', 'capped')]],
  ]),
  {
    byGpu: new Map([[1, [{ at_ms: 1300, color: 'red', label: 'Xid 79' }]]]),
    ofAll: [
      { at_ms: 1250, color: 'white', label: 'epoch 3' },
      { at_ms: 2500, color: 'white', label: 'later' },
    ],
  },
  { levels: LEVELS } as Palette,
  SPAN,
);

describe('chart annotations', () => {
  it('GPU annotations are limited to the visible span', () => {
    expect(labelsOf(ANNOTATIONS.of(0).bands)).toEqual(['[1]']);
    expect(ANNOTATIONS.of(1).conditions.map(({ label, color }) => [label, color])).toEqual([
      ['hot', 'red'],
      ['capped', 'blue'],
    ]);
  });

  it('annotations of several GPUs are named and joined', () => {
    const { bands, conditions, markers } = ANNOTATIONS.of(null);
    expect(bands).toEqual([makeBand(1000, 1600, '[1]'), makeBand(1700, 1800, '[2]')]);
    expect(labelsOf(conditions)).toEqual(['GPU 0: warm', 'GPU 1: hot']);
    expect(labelsOf(markers)).toEqual(['GPU 1: Xid 79', 'epoch 3', 'later']);
    expect(ANNOTATIONS.machine).toMatchObject({ bands, conditions: [] });
    expect(labelsOf(ANNOTATIONS.machine.markers)).toEqual(['epoch 3', 'later']);
  });

  it('annotations at a time list events first', () => {
    const notes = (at_ms: number): string[] => labelsOf(notesAt(at_ms, ANNOTATIONS.of(1), SPAN));
    expect(notes(1310)).toEqual(['Xid 79', 'hot', 'capped', '[1]']);
    expect(notes(1650)).toEqual(['capped']);
    expect(notes(1240)).toEqual(['epoch 3', 'hot', 'capped', '[1]']);
    const cells = ['a.ipynb [1]', 'b.ipynb [1]', 'a.ipynb [1]'].map((title) => ({
      ...makeBand(0, 9, '[1]'),
      title,
    }));
    const both = notesAt(5, { bands: cells, conditions: [], markers: [] }, SPAN);
    expect(both.map(({ title }) => title)).toEqual(['a.ipynb [1]', 'b.ipynb [1]']);
  });

  it('first annotation row has the most severe condition', () => {
    const { flags, cells, conditions } = ANNOTATIONS.lane;
    expect(labelsOf(flags)).toEqual(['epoch 3', 'GPU 1: Xid 79']);
    expect(labelsOf(cells)).toEqual(['[1]', '[2]']);
    expect(conditions.map(({ gpus, bands }) => [gpus, labelsOf(bands)])).toEqual([
      [[1], ['hot']],
      [[0], ['warm']],
      [[1], ['capped']],
    ]);
  });

  it('equal conditions of several GPUs are merged', () => {
    const spans = (gpu: number): ConditionSpan[] => [
      makeSpan(1000 + gpu, 2000, 'notice', 'capped'),
      ...(gpu === 2 ? [makeSpan(1500, 2000, 'critical', 'lost')] : []),
    ];
    const rowsOf = (gpus: readonly number[]): unknown =>
      annotationsOf(
        gpus,
        new Map(),
        new Map(gpus.map((gpu) => [gpu, spans(gpu)])),
        { byGpu: new Map(), ofAll: [] },
        { levels: LEVELS } as Palette,
        SPAN,
      ).lane.conditions.map(({ gpus, bands }) => [gpus, bands.map(({ from_ms }) => from_ms)]);
    expect(rowsOf([0, 1])).toEqual([
      [[0], [1000]],
      [[1], [1001]],
    ]);
    expect(rowsOf([0, 1, 2])).toEqual([
      [[2], [1500]],
      [[0, 1, 2], [1000]],
    ]);
  });
});
