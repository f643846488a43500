import { nullTranslator } from '@jupyterlab/translation';
import { expect, it, vi } from 'vitest';

vi.mock('@jupyterlab/apputils', () => ({ Notification: { warning: vi.fn() } }));

import { Notification } from '@jupyterlab/apputils';

import { properties } from '../../schema/plugin.json';
import { findChartIds, warnAboutUnknownCharts } from './chosen-charts';

const trans = nullTranslator.load('gpumon');

it('charts are selected by name or ID', () => {
  expect(
    findChartIds(
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

it('every suggested chart name selects a different chart', () => {
  const { examples } = properties.charts.items;
  expect(examples.length).toBeGreaterThan(70);
  expect(findChartIds(examples, trans)).toHaveLength(examples.length);
  warnAboutUnknownCharts(examples, trans);
  expect(Notification.warning).not.toHaveBeenCalled();
});

it('unknown chart name suggests the nearest one', () => {
  expect(findChartIds(['Powr', 'SM activ'], trans)).toEqual([]);
  warnAboutUnknownCharts(['Powr', 'SM activ', 'Fan'], trans);
  const messages = vi.mocked(Notification.warning).mock.calls.map(([message]) => message);
  expect(messages).toEqual([
    expect.stringMatching(/"Powr".*"Power"/),
    expect.stringMatching(/"SM activ".*"SM active"/),
  ]);
});
