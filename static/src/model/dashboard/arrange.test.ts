import { describe, expect, it } from 'vitest';

import { chartsOf, moveChart, moveChartByStep } from './arrange';
import { keepValidCharts, fromAddress, toAddress, DEFAULT_STATE } from './state';

const CHARTS = ['power', 'cpu', 'memory', 'ram', 'pcie.width'];

describe('charts of a dashboard', () => {
  it('default or selected charts are shown in order', () => {
    expect(chartsOf(DEFAULT_STATE, 8).slice(0, 2)).toEqual([
      'utilization.gpu_percent',
      'activity.sm_percent',
    ]);
    expect(chartsOf(DEFAULT_STATE, 1).slice(0, 2)).toEqual(['activity', 'memory']);
    const chosen = { ...DEFAULT_STATE, charts: ['cpu', 'power', 'power.draw_watts'] };
    expect(chartsOf(chosen, 8)).toEqual(['cpu', 'power.draw_watts', 'power.instant_watts']);
    expect(chartsOf(chosen, 1)).toEqual(chosen.charts);
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

  it('charts of any field are in the URL', () => {
    const address = 'charts=pcie.width,power,host.cpu.load_1m';
    expect(fromAddress(address).charts).toEqual(['pcie.width', 'power', 'host.cpu.load_1m']);
    expect(toAddress(fromAddress(address))).toBe(address);
    expect(keepValidCharts(['nonsense'])).toBeNull();
  });
});
