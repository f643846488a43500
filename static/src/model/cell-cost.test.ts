import { describe, expect, it, vi } from 'vitest';

import { setEnergyPrice } from '../lib/format';
import { GIB, LIMIT_SUMMARY, NOW } from '../testing/frames';
import { makeKernelCost } from '../testing/kernel-cost';
import { toCellCost, isWorthShowing, requestCost, type CellCost } from './cell-cost';
import { describeCell } from './describe-cell';

describe('cost of a cell', () => {
  it('cost request has start and optional end', async () => {
    const request = vi.fn(() => Promise.resolve(Response.json(makeKernelCost())));
    expect(await requestCost('k&1', 5, 7, request)).toEqual(makeKernelCost());
    expect(await requestCost('k', 5, null, request)).toEqual(makeKernelCost());
    expect(request.mock.calls).toEqual([
      ['api/v1/cost?kernel_id=k%261&from_ms=5&to_ms=7'],
      ['api/v1/cost?kernel_id=k&from_ms=5'],
    ]);
  });

  it('failed cost request yields no cost', async () => {
    const old = (): Promise<Response> => Promise.resolve(new Response('', { status: 404 }));
    expect(await requestCost('k', 5, 7, old)).toBeNull();
    expect(await requestCost('k', 5, 7, () => Promise.reject(new Error()))).toBeNull();
  });

  it('cost includes energy of other GPU users', () => {
    const energy_joules = { least: 1, most: 9, estimate: 5 };
    expect(toCellCost(makeKernelCost({ energy_joules }))).toMatchObject({
      energy_joules: 9,
      gpus: [0, 1],
      limits: LIMIT_SUMMARY,
    });
    expect(toCellCost(makeKernelCost({ energy_joules: null }))?.energy_joules).toBeNull();
  });

  it('cell without GPU has no cost', () =>
    expect(toCellCost(makeKernelCost({ gpus: [] }))).toBeNull());
});

it('only noticeable costs are worth showing', () => {
  const brief = { duration_s: 0.1, gpu_s: 0.03, memory_change_bytes: 0 };
  const costs = [
    brief,
    { ...brief, memory_change_bytes: 3 * GIB },
    { ...brief, duration_s: 0.6 },
    { ...brief, duration_s: 5, gpu_s: 0 },
    { ...brief, duration_s: 5, gpu_s: null },
    { ...brief, memory_change_bytes: null, peak_memory_bytes: 20 * GIB },
  ];
  const shown = costs.map((cost) => isWorthShowing({ ...cost } as CellCost));
  expect(shown).toEqual([false, true, true, false, true, true]);
});

describe('text of a cost', () => {
  const cost: CellCost = {
    started_ms: NOW,
    ended_ms: NOW + 12_400,
    duration_s: 12.4,
    gpus: [0],
    gpu_s: 9.8,
    peak_memory_bytes: 61 * GIB,
    memory_change_bytes: 8.2 * GIB,
    energy_joules: 6100,
    shared: false,
    limits: null,
  };
  const line = (changes: Partial<CellCost> = {}): string =>
    describeCell({ ...cost, ...changes })
      .map(({ text }) => text.replaceAll('\u00a0', ' '))
      .join('   ');

  it('cost text has time, memory and energy', () =>
    expect(line()).toBe('12.4 s   GPU 9.80 s   peak 61.0 GiB (+8.20)   6.10 kJ'));

  it('cost text includes the price of energy', () => {
    setEnergyPrice({ per_kwh: 0.3, before: '', after: ' EUR' });
    expect(line()).toContain('6.10 kJ (0.0005 EUR)');
    setEnergyPrice(null);
  });

  it('cost text ends with the main cause', () => {
    const limits = LIMIT_SUMMARY;
    expect(line({ limits })).toMatch(/6\.10 kJ {3}host-bound 62 %$/);
    const part = describeCell({ ...cost, limits }).find(({ id }) => id === 'limit');
    expect(part?.title.replaceAll('\u00a0', ' ').split('\n')).toEqual([
      'What limited the cell on GPU 0: host-bound 62 %, tensor-bound 30 %',
      'A process uses 100 % of a core while the GPU waits.',
      'Prepare data in worker processes or on the GPU, and start the next step before its result is needed.',
    ]);
    const idle = { ...limits, shares: [{ cause: 'idle', percent: 97 } as const] };
    expect(line({ limits: idle })).toBe(line());
    expect(line({ limits: { ...limits, shares: [] } })).toBe(line());
  });

  it('cost text omits unknown values and marks sharing', () => {
    expect(line({ gpu_s: null, energy_joules: null, memory_change_bytes: 0 })).toBe(
      '12.4 s   peak 61.0 GiB',
    );
    expect(line({ memory_change_bytes: -2 * GIB, shared: true })).toBe(
      '12.4 s   GPU 9.80 s   peak 61.0 GiB (−2.00)   6.10 kJ shared',
    );
    const little = { peak_memory_bytes: null, gpu_s: null, energy_joules: 0.5 };
    expect(line({ duration_s: 0.08, ...little })).toBe('80 ms   0.50 J');
  });
});
