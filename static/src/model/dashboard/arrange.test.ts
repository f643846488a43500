import { describe, expect, it } from 'vitest';

import { chartsOf, placed, stepped } from './arrange';
import { asChosen, fromAddress, toAddress, DEFAULT_STATE } from './state';

const CHARTS = ['power', 'cpu', 'memory', 'ram', 'pcie.width'];

describe('the charts of a dashboard', () => {
  it('are the usual ones of the layout, or those that were chosen, in their order', () => {
    expect(chartsOf(DEFAULT_STATE, 8).slice(0, 2)).toEqual([
      'utilization.gpu_percent',
      'activity.sm_percent',
    ]);
    expect(chartsOf(DEFAULT_STATE, 1).slice(0, 2)).toEqual(['activity', 'memory']);
    const chosen = { ...DEFAULT_STATE, charts: ['cpu', 'power', 'power.draw_watts'] };
    expect(chartsOf(chosen, 8)).toEqual(['cpu', 'power.draw_watts', 'power.instant_watts']);
    expect(chartsOf(chosen, 1)).toEqual(chosen.charts);
  });

  it('are moved among their own, those of GPUs and those of the machine', () => {
    expect(placed(CHARTS, 'pcie.width', 'power', false)).toEqual([
      'pcie.width',
      'power',
      'cpu',
      'memory',
      'ram',
    ]);
    expect(placed(CHARTS, 'power', 'memory', true)).toEqual([
      'cpu',
      'memory',
      'power',
      'ram',
      'pcie.width',
    ]);
    expect(placed(CHARTS, 'power', 'ram', true)).toBe(CHARTS);
    expect(stepped(CHARTS, 'cpu', 1)).toEqual(['power', 'memory', 'ram', 'cpu', 'pcie.width']);
    expect(stepped(CHARTS, 'pcie.width', -1)).toEqual([
      'power',
      'cpu',
      'pcie.width',
      'memory',
      'ram',
    ]);
    expect(stepped(CHARTS, 'power', -1)).toBe(CHARTS);
  });

  it('may be of any field, are in the address, and are never none', () => {
    const address = 'charts=pcie.width,power,host.cpu.load_1m';
    expect(fromAddress(address).charts).toEqual(['pcie.width', 'power', 'host.cpu.load_1m']);
    expect(toAddress(fromAddress(address))).toBe(address);
    expect(asChosen(['nonsense'])).toBeNull();
  });
});
