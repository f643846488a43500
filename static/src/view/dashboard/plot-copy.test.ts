import { expect, it } from 'vitest';

import { csvOf } from './plot-copy';

it('chart CSV has one row per visible time', () => {
  const at = (...seconds: number[]): number[] => seconds.map((second) => second * 1000);
  const columns = [
    { name: 'GPU 0 power.draw_watts', times_ms: at(1, 2, 3, 9), values: [10, NaN, 30.5, 90] },
    { name: '=evil("x")', times_ms: at(3, 4), values: [7, 8] },
  ];
  expect(csvOf(columns, 0, 5000).split('\r\n')).toEqual([
    `time,"GPU 0 power.draw_watts","'=evil(""x"")"`,
    '1970-01-01T00:00:01.000Z,10,',
    '1970-01-01T00:00:03.000Z,30.5,7',
    '1970-01-01T00:00:04.000Z,,8',
    '',
  ]);
});
