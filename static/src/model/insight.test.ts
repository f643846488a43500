import { describe, expect, it } from 'vitest';

import { Timeline } from '../lib/timeline';
import { GIB, gpu, inventory, NOW, sample } from '../testing/frames';
import type { Condition, GpuSample } from '../wire';
import { gpusOf, seriesKey, type GpuView } from './gpu';
import type { Grower } from './growth';
import type { HolderRow } from './holders';
import { forecastOf, describeForecast } from './insight';
import type { Description } from './describe';

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

function memoryForecast(gpu: GpuView, timeline: Timeline, growers: readonly Grower[] = []): Description | null {
  const forecast = forecastOf(gpu, timeline, 5 * 60_000);
  return forecast === null ? null : describeForecast(forecast, growers);
}

describe('a forecast', () => {
  it('says when memory that grows steadily will be full', () => {
    // 140 GiB in all, 1 reserved by the driver, 78 in use: 61 are left at 1.6 GiB/s.
    const words = memoryForecast(
      view(gpu(0)),
      past(60, (ago_s) => (78 - 1.6 * ago_s) * GIB, 90),
    );
    expect(words).toMatchObject({ level: 'act', text: 'memory full in about 40\u00a0s: grows 1.60\u00a0GiB/s' });
  });

  it('names those who grow', () => {
    const grower = (name: string, gib_per_s: number): Grower => ({
      row: { name } as HolderRow,
      bytes_per_ms: (gib_per_s * GIB) / 1000,
    });
    const words = (gib_per_s: number, ...growers: Grower[]): string | undefined =>
      memoryForecast(
        view(gpu(0)),
        past(60, (ago_s) => (78 - gib_per_s * ago_s) * GIB, 90),
        growers,
      )?.text.replaceAll('\u00a0', ' ');
    expect(words(1.6, grower('train.ipynb', 1.6), grower('other', 0.1))).toBe(
      'memory full in about 40 s: train.ipynb grows 1.60 GiB/s',
    );
    expect(words(1.6, grower('a.ipynb', 0.9), grower('b.ipynb', 0.4), grower('c.ipynb', 0.4))).toBe(
      'memory full in about 40 s: a.ipynb grows 0.90 GiB/s, b.ipynb 0.40 GiB/s',
    );
    expect(words(1.6, grower('other', 0.1))).toBe('memory full in about 40 s: grows 1.60 GiB/s');
    expect(words(15, grower('train.ipynb', 15))).toBe('memory full: train.ipynb grew 15.0 GiB/s');
    expect(words(15)).toBe('memory full: grew 15.0 GiB/s');
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
