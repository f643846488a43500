import { expect, it } from 'vitest';

import { makeRunResult } from '../testing/runs';
import { compareRuns } from './run-comparison';

it('comparison pairs results and keeps unpaired ones', () => {
  const [triad, copy, read] = ['triad', 'copy', 'read'].map((id) => makeRunResult({ id }));
  if (triad === undefined || copy === undefined || read === undefined) {
    throw new Error('no results');
  }
  const onCpu = { ...triad, device: 'CPU' };
  expect(compareRuns([triad, copy], [read, onCpu])).toEqual([
    { before: triad, after: onCpu, either: triad },
    { before: copy, after: null, either: copy },
    { before: null, after: read, either: read },
  ]);
  expect(compareRuns([triad], [{ ...triad, dtype: 'fp64' }])).toHaveLength(2);
});
