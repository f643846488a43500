import { nullTranslator } from '@jupyterlab/translation';
import { expect, it, vi } from 'vitest';

vi.mock('@jupyterlab/apputils', () => ({ Notification: { warning: vi.fn() } }));

import { Notification } from '@jupyterlab/apputils';

import { properties } from '../../schema/plugin.json';
import { chosenCharts, warnOfUnknown } from './chosen-charts';

const trans = nullTranslator.load('gpumon');

it('charts are selected by name or ID', () => {
  expect(
    chosenCharts(
      ['Power', ' sm active', 'cpu', 'RAM, total', 'temperature.gpu_celsius', 'power'],
      trans,
    ),
  ).toEqual([
    'power',
    'activity.sm_percent',
    'cpu',
    'host.memory.total_bytes',
    'temperature.gpu_celsius',
  ]);
});

it('each offered name selects another chart', () => {
  const { examples } = properties.charts.items;
  expect(examples.length).toBeGreaterThan(70);
  expect(chosenCharts(examples, trans)).toHaveLength(examples.length);
  warnOfUnknown(examples, trans);
  expect(Notification.warning).not.toHaveBeenCalled();
});

it('unknown chart name suggests the nearest one', () => {
  expect(chosenCharts(['Powr', 'SM activ'], trans)).toEqual([]);
  warnOfUnknown(['Powr', 'SM activ', 'Fan'], trans);
  const messages = vi.mocked(Notification.warning).mock.calls.map(([message]) => message);
  expect(messages).toEqual([
    expect.stringMatching(/"Powr".*"Power"/),
    expect.stringMatching(/"SM activ".*"SM active"/),
  ]);
});
