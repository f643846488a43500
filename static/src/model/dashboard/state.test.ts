import { describe, expect, it } from 'vitest';

import {
  DEFAULT_STATE,
  parseDashboardState,
  isPaused,
  moveByShare,
  moveBy,
  displayedRange,
  resetZoom,
  resume,
  formatDashboardState,
  togglePaused,
  withAxisRange,
  withHeight,
  toggleGpuSelection,
  zoomTo,
  zoomBy,
  zoomSince,
  zoomByStep,
  displayedChartIds,
  moveChart,
  moveChartByStep,
  keepValidCharts,
} from './state';

const NOW = 1_763_635_200_000;

describe('state of a dashboard', () => {
  it('live range moves with time', () => {
    expect(displayedRange(DEFAULT_STATE, NOW)).toEqual([NOW - 120_000, NOW]);
    expect(displayedRange(DEFAULT_STATE, NOW + 5000)).toEqual([NOW - 115_000, NOW + 5000]);
  });

  it('pause keeps the range until resume', () => {
    const held = togglePaused(DEFAULT_STATE, NOW);
    expect(displayedRange(held, NOW + 60_000)).toEqual([NOW - 120_000, NOW]);
    expect(togglePaused(held, NOW + 60_000)).toEqual(DEFAULT_STATE);
  });

  it('drag in either direction zooms', () => {
    const zoom = zoomTo(DEFAULT_STATE, NOW - 10_000, NOW - 30_000);
    expect(displayedRange(zoom, NOW)).toEqual([NOW - 30_000, NOW - 10_000]);
    expect(isPaused(zoom)).toBe(true);
    expect(zoomTo(zoom, NOW, NOW + 3)).toBe(zoom);
    expect(zoomSince(zoom, NOW - 3, NOW).range).toEqual([NOW - 1000, NOW]);
    expect(resume(zoom)).toEqual(DEFAULT_STATE);
  });

  it('range moves back, and forward until now', () => {
    const back = moveByShare(DEFAULT_STATE, -0.5, NOW);
    expect(displayedRange(back, NOW)).toEqual([NOW - 180_000, NOW - 60_000]);
    expect(displayedRange(moveByShare(back, 5, NOW), NOW)).toEqual([NOW - 120_000, NOW]);
    expect(displayedRange(moveBy(back, 1234, NOW), NOW)).toEqual([NOW - 178_766, NOW - 58_766]);
  });
});

describe('dashboard URL', () => {
  it('URL omits default values', () => {
    expect(formatDashboardState(DEFAULT_STATE)).toBe('');
    expect(parseDashboardState('')).toEqual(DEFAULT_STATE);
  });

  it('URL restores the state', () => {
    const state = zoomTo(
      {
        ...DEFAULT_STATE,
        gpus: [0, 3],
        layout: 'apart',
        charts: ['power', 'cpu'],
        hidden: ['2', 'x'],
        span_ms: 300_000,
      },
      NOW,
      NOW + 9000,
    );
    const address = formatDashboardState(state);
    expect(address).toBe(
      `gpu=0,3&view=apart&charts=power,cpu&hide=2,x&span=5&from=${NOW}&to=${String(NOW + 9000)}`,
    );
    expect(parseDashboardState(address)).toEqual(state);
  });

  it('URL of paused charts has their range', () => {
    const seen = parseDashboardState(formatDashboardState(togglePaused(DEFAULT_STATE, NOW)));
    expect(displayedRange(seen, NOW + 60_000)).toEqual([NOW - 120_000, NOW]);
  });

  it('invalid parts of the URL are ignored', () => {
    expect(parseDashboardState('gpu=x,-1,2&charts=powr&span=-3&from=9&to=3&view=')).toEqual({
      ...DEFAULT_STATE,
      gpus: [2],
    });
    expect(parseDashboardState('gpu=&charts=&span=x&from=1&to=Infinity')).toEqual(DEFAULT_STATE);
  });
});

describe('zooming by a factor', () => {
  const live = { ...DEFAULT_STATE, span_ms: 120_000 };

  it('zoom keeps the time under the pointer', () => {
    const zoomedIn = zoomBy(live, 0.5, NOW - 30_000, NOW);
    expect(zoomedIn.range).toEqual([NOW - 75_000, NOW - 15_000]);
    expect(displayedRange(zoomedIn, NOW + 9000)).toEqual(zoomedIn.range);
  });

  it('zooming out fully resumes live charts', () => {
    const back = zoomBy(zoomBy(live, 0.5, NOW - 30_000, NOW), 2, NOW - 30_000, NOW);
    expect(back).toEqual(live);
    const paused = togglePaused(live, NOW);
    expect(zoomBy(zoomBy(paused, 0.5, NOW, NOW + 5000), 4, NOW, NOW + 5000)).toEqual(paused);
  });

  it('live charts zoom out into the past', () => {
    expect(zoomBy(live, 3, NOW - 30_000, NOW)).toEqual({ ...live, span_ms: 360_000 });
    const month = zoomBy(live, 1e9, NOW, NOW);
    expect([month.span_ms, month.range]).toEqual([30 * 86_400_000, null]);
    expect(parseDashboardState(formatDashboardState(month))).toEqual(month);
  });

  it('zoom ranges from 1 s to 30 days', () => {
    const [from = 0, to = 0] = zoomBy(live, 1e-9, NOW - 60_000, NOW).range ?? [];
    expect(to - from).toBe(1000);
    const past = zoomTo(live, NOW - 9e9, NOW - 8e9);
    const [first = 0, last = 0] = zoomBy(past, 100, NOW - 8.5e9, NOW).range ?? [];
    expect(last - first).toBe(30 * 86_400_000);
  });

  it('zoom step changes the live time range', () => {
    expect(zoomByStep(live, 0.5, NOW).span_ms).toBe(60_000);
    expect(zoomByStep(live, 2, NOW).span_ms).toBe(300_000);
    expect(zoomByStep({ ...live, span_ms: 60_000 }, 0.5, NOW)).toMatchObject({
      span_ms: 60_000,
      range: null,
    });
    expect(zoomByStep(zoomTo(live, NOW - 40_000, NOW), 0.5, NOW).range).toEqual([
      NOW - 30_000,
      NOW - 10_000,
    ]);
  });
});

describe('value axis of a chart', () => {
  it('axis zoom is kept in URL and reset', () => {
    const state = withAxisRange(
      { ...DEFAULT_STATE, fitted: true },
      'power.draw_watts',
      [700, 300.04],
    );
    expect(formatDashboardState(state)).toBe('fit=1&axes=power.draw_watts:300.04:700');
    expect(parseDashboardState(formatDashboardState(state))).toEqual(state);
    expect(withAxisRange(state, 'power.draw_watts', null).axes).toEqual({});
    expect(resetZoom(state)).toEqual(DEFAULT_STATE);
    expect(parseDashboardState('axes=power:9:3,cpu:x:5,:1:2,memory').axes).toEqual({});
  });
});

it('chart height is limited and in the URL', () => {
  const state = withHeight(DEFAULT_STATE, 200.4);
  expect(formatDashboardState(state)).toBe('height=200');
  expect(parseDashboardState('height=200')).toEqual(state);
  expect([withHeight(state, 5).height_px, withHeight(state, 1e4).height_px]).toEqual([60, 600]);
  expect(parseDashboardState('height=9').height_px).toBe(60);
  expect(parseDashboardState('height=x').height_px).toBeNull();
  expect(withHeight(state, null)).toEqual(DEFAULT_STATE);
});

it('first selected GPU replaces all, others are added', () => {
  expect(toggleGpuSelection(null, 1, [0, 1, 2])).toEqual([1]);
  expect(toggleGpuSelection([1], 0, [0, 1, 2])).toEqual([0, 1]);
  expect(toggleGpuSelection([0, 1], 2, [0, 1, 2])).toBeNull();
  expect(toggleGpuSelection([1], 1, [0, 1, 2])).toBeNull();
});

const CHARTS = ['power', 'cpu', 'memory', 'ram', 'pcie.width'];

describe('charts of a dashboard', () => {
  it('default or selected charts are shown in order', () => {
    expect(displayedChartIds(DEFAULT_STATE, 8).slice(0, 2)).toEqual([
      'utilization.gpu_percent',
      'activity.sm_percent',
    ]);
    expect(displayedChartIds(DEFAULT_STATE, 1).slice(0, 3)).toEqual([
      'activity',
      'limits',
      'memory',
    ]);
    const chosen = { ...DEFAULT_STATE, charts: ['cpu', 'power', 'power.draw_watts', 'limits'] };
    expect(displayedChartIds(chosen, 8)).toEqual([
      'cpu',
      'power.draw_watts',
      'power.instant_watts',
      'limits',
    ]);
    expect(displayedChartIds(chosen, 1)).toEqual(chosen.charts);
  });

  it('GPU and machine charts are moved separately', () => {
    expect(moveChart(CHARTS, 'pcie.width', 'power', false)).toEqual([
      'pcie.width',
      'power',
      'cpu',
      'memory',
      'ram',
    ]);
    expect(moveChart(CHARTS, 'power', 'memory', true)).toEqual([
      'cpu',
      'memory',
      'power',
      'ram',
      'pcie.width',
    ]);
    expect(moveChart(CHARTS, 'power', 'ram', true)).toBe(CHARTS);
    expect(moveChartByStep(CHARTS, 'cpu', 1)).toEqual([
      'power',
      'memory',
      'ram',
      'cpu',
      'pcie.width',
    ]);
    expect(moveChartByStep(CHARTS, 'pcie.width', -1)).toEqual([
      'power',
      'cpu',
      'pcie.width',
      'memory',
      'ram',
    ]);
    expect(moveChartByStep(CHARTS, 'power', -1)).toBe(CHARTS);
  });

  it('URL can select charts of any field', () => {
    const address = 'charts=pcie.width,power,host.cpu.load_1m';
    expect(parseDashboardState(address).charts).toEqual([
      'pcie.width',
      'power',
      'host.cpu.load_1m',
    ]);
    expect(formatDashboardState(parseDashboardState(address))).toBe(address);
    expect(keepValidCharts(['nonsense'])).toBeNull();
  });
});
