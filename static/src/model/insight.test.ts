import { describe, expect, it } from 'vitest';

import { Timeline } from '../lib/timeline';
import { GIB, gpu, inventory, NOW, process, sample } from '../testing/frames';
import type { GpuSample } from '../wire';
import { gpusOf, seriesKey, type GpuView } from './gpu';
import { insightOf } from './insight';

function view(now: GpuSample): GpuView {
  const found = gpusOf(inventory(1), sample(NOW, [now]))[0];
  if (found === undefined) {
    throw new Error('the inventory is empty');
  }
  return found;
}

/** A past of `seconds`, one moment each. */
function past(seconds: number, memory: (ago_s: number) => number, use: number): Timeline {
  const timeline = new Timeline(7200);
  const id = { index: 0, uuid: 'GPU-0' };
  for (let ago_s = seconds; ago_s >= 0; ago_s -= 1) {
    const moment = new Map([
      [seriesKey(id, 'memory.used_bytes'), memory(ago_s)],
      [seriesKey(id, 'utilization.gpu_percent'), use],
    ]);
    timeline.push(NOW - ago_s * 1000, moment, 2500);
  }
  return timeline;
}

function withMemory(used_bytes: number): GpuSample {
  return gpu(0, { memory: { ...gpu(0).memory, used_bytes } });
}

describe('a forecast', () => {
  it('says when memory that grows steadily will be full', () => {
    // 140 GiB in all, 1 kept by the driver, 78 in use: 61 are left at 1.6 GiB/s.
    const words = insightOf(
      view(gpu(0)),
      past(60, (ago_s) => (78 - 1.6 * ago_s) * GIB, 90),
    );
    expect(words).toMatchObject({ level: 'act', text: 'memory full in about 40\u00a0s: grows 1.60 GiB/s' });
  });

  it('worries nobody with what is far away', () => {
    const words = insightOf(
      view(gpu(0)),
      past(60, (ago_s) => (78 - 0.05 * ago_s) * GIB, 90),
    );
    expect(words).toBeNull();
  });

  it('is not made from one allocation', () => {
    const words = insightOf(
      view(gpu(0)),
      past(60, (ago_s) => (ago_s > 3 ? 10 : 78) * GIB, 90),
    );
    expect(words).toBeNull();
  });

  it('is not made from growth that levels off, as when a model is loaded', () => {
    const words = insightOf(
      view(gpu(0)),
      past(60, (ago_s) => (78 - 1.6 * Math.max(0, ago_s - 6)) * GIB, 90),
    );
    expect(words).toBeNull();
  });

  it('is not made from a few seconds', () => {
    const words = insightOf(
      view(gpu(0)),
      past(15, (ago_s) => (78 - 1.6 * ago_s) * GIB, 90),
    );
    expect(words).toBeNull();
  });
});

describe('held but idle', () => {
  const idle = { ...withMemory(30 * GIB), processes: [process(1)] };

  const steady = (): number => 30 * GIB;

  it('is told after some minutes', () => {
    const timeline = past(26 * 60, steady, 0);
    timeline.values(seriesKey({ index: 0, uuid: 'GPU-0' }, 'utilization.gpu_percent'))[60] = 12;
    expect(insightOf(view(idle), timeline)?.text).toBe('held but idle 24\u00a0min');
    expect(insightOf(view(idle), past(120, steady, 0))).toBeNull();
  });

  it('says so where it may have begun before anything is known', () => {
    expect(insightOf(view(idle), past(26 * 60, steady, 0))?.text).toBe('held but idle for over 26\u00a0min');
  });

  it('is not told of a GPU that works, or that nobody holds', () => {
    expect(
      insightOf(
        view(idle),
        past(26 * 60, () => 30 * GIB, 1),
      ),
    ).toBeNull();
    expect(
      insightOf(
        view({ ...idle, processes: [] }),
        past(26 * 60, () => 30 * GIB, 0),
      ),
    ).toBeNull();
  });
});
