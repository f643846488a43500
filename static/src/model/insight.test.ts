import { describe, expect, it } from 'vitest';

import { Timeline } from '../lib/timeline';
import { GIB, gpu, inventory, NOW, sample } from '../testing/frames';
import type { Condition, GpuSample } from '../wire';
import { gpusOf, seriesKey, type GpuView } from './gpu';
import { memoryForecast } from './insight';

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

describe('a forecast', () => {
  it('says when memory that grows steadily will be full', () => {
    // 140 GiB in all, 1 kept by the driver, 78 in use: 61 are left at 1.6 GiB/s.
    const words = memoryForecast(
      view(gpu(0)),
      past(60, (ago_s) => (78 - 1.6 * ago_s) * GIB, 90),
    );
    expect(words).toMatchObject({ level: 'act', text: 'memory full in about 40\u00a0s: grows 1.60 GiB/s' });
  });

  it('worries nobody with what is far away', () => {
    const words = memoryForecast(
      view(gpu(0)),
      past(60, (ago_s) => (78 - 0.05 * ago_s) * GIB, 90),
    );
    expect(words).toBeNull();
  });

  it('is not made from one allocation', () => {
    const words = memoryForecast(
      view(gpu(0)),
      past(60, (ago_s) => (ago_s > 3 ? 10 : 78) * GIB, 90),
    );
    expect(words).toBeNull();
  });

  it('is not made from growth that levels off, as when a model is loaded', () => {
    const words = memoryForecast(
      view(gpu(0)),
      past(60, (ago_s) => (78 - 1.6 * Math.max(0, ago_s - 6)) * GIB, 90),
    );
    expect(words).toBeNull();
  });

  it('is not made from a few seconds', () => {
    const words = memoryForecast(
      view(gpu(0)),
      past(15, (ago_s) => (78 - 1.6 * ago_s) * GIB, 90),
    );
    expect(words).toBeNull();
  });

  it('is left to the server where it says that memory is nearly full', () => {
    const full: Condition = {
      condition: 'memory_nearly_full',
      since_ms: NOW,
      severity: 'warning',
      text: 'Of 140 GiB of memory, 1.0 GiB are left.',
      free_bytes: GIB,
      total_bytes: 140 * GIB,
    };
    const growth = past(60, (ago_s) => (78 - 1.6 * ago_s) * GIB, 90);
    expect(memoryForecast(view(gpu(0)), growth)).not.toBeNull();
    expect(memoryForecast(view(gpu(0, { conditions: [full] })), growth)).toBeNull();
  });
});
