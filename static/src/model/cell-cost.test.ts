import { describe, expect, it } from 'vitest';

import { GIB, gpu, NOW, process, sample } from '../testing/frames';
import type { Process, Sample } from '../wire';
import { CellMeter, isWorthShowing, type CellCost } from './cell-cost';
import { describeCell } from './describe-cell';

function own(memory_gib: number, sm_percent: number, pid = 10): Process {
  const notebook = { kernel_id: 'k', kernel_pid: 10, path: 'train.ipynb' };
  return process(pid, {
    owner: { parents: [], notebook },
    memory_bytes: memory_gib * GIB,
    sm_percent,
  });
}

/** So many seconds after the start of the cell, with these processes on GPU 0 and others on GPU 1. */
function at(second: number, processes: Process[], draw_watts = 500): Sample {
  const power = { ...gpu(0).power, draw_watts, instant_watts: draw_watts };
  return sample(NOW + second * 1000, [
    gpu(0, { processes, power }),
    gpu(1, { processes: [process(99)] }),
  ]);
}

/** A cell that runs from `from` to `to` seconds, and the samples around it. */
function measured(
  from: number,
  to: number,
  before: Sample | null,
  samples: Sample[],
): CellCost | null {
  const meter = new CellMeter('k', NOW + from * 1000, before);
  meter.end(NOW + to * 1000);
  const last = samples.map((one) => meter.addSample(one)).at(-1);
  expect(last).toBe(true);
  return meter.cost(new Map());
}

describe('the cost of a cell', () => {
  it('counts the parts of the samples in which it ran', () => {
    const cost = measured(0.5, 3.5, at(0, [own(10, 0)]), [
      at(1, [own(20, 100)]),
      at(2, [own(50, 50)]),
      at(3, [own(40, 0)]),
      at(4, [own(18, 100)]),
    ]);
    expect(cost).toMatchObject({
      gpus: [0],
      // 0.5 s of 100 %, 1 s of 50 %, 1 s of 0 %, 0.5 s of 100 %.
      gpu_ms: 1500,
      peak_bytes: 50 * GIB,
      change_bytes: 8 * GIB,
      joules: 1500,
      shared: false,
    });
  });

  it('counts what the kernel has started with it, and no more than all of a GPU', () => {
    const cost = measured(0, 1, at(0, []), [at(1, [own(10, 70), own(20, 60, 11), process(5)])]);
    expect(cost).toMatchObject({
      gpu_ms: 1000,
      peak_bytes: 30 * GIB,
      change_bytes: 30 * GIB,
      shared: true,
    });
  });

  it('of less than the time between two samples is what is seen after it', () => {
    const cost = measured(0.2, 0.3, at(0, [own(1, 0)]), [at(1, [own(4, 30)])]);
    expect(cost).toMatchObject({ peak_bytes: 4 * GIB, change_bytes: 3 * GIB });
    expect(cost?.gpu_ms).toBeCloseTo(30, 6);
  });

  it('is nothing where the kernel holds no GPU, and leaves out what the driver does not tell', () => {
    expect(measured(0, 1, null, [at(1, [process(5)])])).toBeNull();
    const silent = {
      ...own(0, 0),
      memory_bytes: { absent: 'unknown' },
      sm_percent: { absent: 'unknown' },
    } as Process;
    const cost = measured(0, 1, null, [at(1, [silent])]);
    expect(cost).toMatchObject({ gpu_ms: null, peak_bytes: null, joules: 500 });
  });

  it('takes nothing in twice, and nothing after its end', () => {
    const meter = new CellMeter('k', NOW, at(0, []));
    expect(meter.addSample(at(0, [own(90, 100)]))).toBe(false);
    expect(meter.addSample(at(1, [own(2, 100)]))).toBe(false);
    meter.end(NOW + 1500);
    expect(meter.addSample(at(2, [own(2, 100)]))).toBe(true);
    expect(meter.addSample(at(3, [own(80, 100)]))).toBe(true);
    expect(meter.cost(new Map())).toMatchObject({
      gpu_ms: 1500,
      peak_bytes: 2 * GIB,
      ended_ms: NOW + 1500,
    });
  });
});

it('is worth a line where it took time or changed something', () => {
  const brief = measured(0, 0.1, at(0, [own(1, 0)]), [at(1, [own(1, 30)])]);
  const loaded = measured(0, 0.1, at(0, [own(1, 0)]), [at(1, [own(4, 30)])]);
  const long = measured(0, 0.6, at(0, [own(1, 0)]), [at(1, [own(1, 30)])]);
  const asleep = measured(0, 5, at(0, [own(8, 0)]), [at(1, [own(8, 0)]), at(6, [own(8, 0)])]);
  const shown = [brief, loaded, long, asleep].map((cost) => cost !== null && isWorthShowing(cost));
  expect(shown).toEqual([false, true, true, false]);
});

describe('its line', () => {
  const cost: CellCost = {
    started_ms: NOW,
    ended_ms: NOW + 12_400,
    gpus: [0],
    gpu_ms: 9800,
    peak_bytes: 61 * GIB,
    change_bytes: 8.2 * GIB,
    joules: 6100,
    shared: false,
  };
  const line = (changes: Partial<CellCost> = {}): string =>
    describeCell({ ...cost, ...changes })
      .map(({ text }) => text.replaceAll('\u00a0', ' '))
      .join('   ');

  it('says what the cell took', () =>
    expect(line()).toBe('12.4 s   GPU 9.80 s   peak 61.0 GiB (+8.20)   6.10 kJ'));

  it('says only what is known, and what is shared', () => {
    expect(line({ gpu_ms: null, joules: null, change_bytes: 0 })).toBe('12.4 s   peak 61.0 GiB');
    expect(line({ change_bytes: -2 * GIB, shared: true })).toBe(
      '12.4 s   GPU 9.80 s   peak 61.0 GiB (−2.00)   6.10 kJ shared',
    );
    expect(line({ ended_ms: NOW + 80, peak_bytes: null, gpu_ms: null, joules: 0.5 })).toBe(
      '80 ms   0.50 J',
    );
  });
});
