import { describe, expect, it } from 'vitest';

import { Timeline } from '../lib/timeline';
import { gpu, NOW } from '../testing/frames';
import type { GpuSample } from '../wire';
import { EnergyMeter, energyOf } from './cell-energy';

function drawing(instant_watts: number | null, draw_watts = 70): GpuSample {
  const instant = instant_watts ?? ({ absent: 'not_supported' } as const);
  return gpu(0, { power: { ...gpu(0).power, draw_watts, instant_watts: instant } });
}

/** A record of GPU 0 every 20 ms, from so many seconds to so many. */
function trace(
  from_s: number,
  to_s: number,
  watts: (second: number) => number,
): Map<string, Timeline> {
  const timeline = new Timeline(1000);
  for (let ms = from_s * 1000; ms <= to_s * 1000; ms += 20) {
    timeline.push(NOW + ms, new Map([['GPU-0 power_watts', watts(ms / 1000)]]), 1000);
  }
  return new Map([['GPU-0 power_watts', timeline]]);
}

describe('the energy of a GPU', () => {
  it('is that of its measurements, and not of its averages, where nothing is recorded', () => {
    const meter = new EnergyMeter();
    meter.add(drawing(300), drawing(100), NOW, NOW + 1000);
    meter.add(drawing(700), drawing(300), NOW + 1000, NOW + 1500);
    expect(meter.joules(new Map())).toBe(200 + 250);
    expect(meter.isRecorded(new Map())).toBe(false);
  });

  it('is reckoned from averages where the board measures nothing else', () => {
    const meter = new EnergyMeter();
    meter.add(drawing(null, 70), undefined, NOW, NOW + 1000);
    expect(meter.joules(new Map())).toBe(70);
  });

  it('is what the driver recorded, once that is known', () => {
    const meter = new EnergyMeter();
    // Between two samples it goes up at once.
    meter.add(drawing(700), drawing(100), NOW + 500, NOW + 1000);
    meter.add(drawing(700), drawing(700), NOW + 1000, NOW + 2000);
    const watts = (second: number): number => (second < 0.5 ? 100 : 700);
    const early = trace(-1, 1.5, watts);
    expect(meter.isRecorded(early)).toBe(false);
    expect(meter.joules(early)).toBe(200 + 700);
    const whole = trace(-1, 3, watts);
    expect(meter.isRecorded(whole)).toBe(true);
    expect(meter.joules(whole)).toBeCloseTo(1.5 * 700, 6);
  });
});

describe('the area below records', () => {
  const times = [0, 100, 200, 300];

  it('ends where it is asked to, between two records', () => {
    expect(energyOf(times, [0, 100, 100, 0], 50, 250)).toBeCloseTo((3.75 + 10 + 3.75) / 1, 6);
    expect(energyOf(times, [5, 5, 5, 5], 0, 300)).toBeCloseTo(1.5, 6);
  });

  it('is unknown where a hole is in between, before or after', () => {
    expect(energyOf(times, [5, NaN, 5, 5], 0, 300)).toBeNull();
    expect(energyOf(times, [5, 5, 5, 5], -101, 300)).toBeNull();
    expect(energyOf(times, [5, 5, 5, 5], 0, 401)).toBeNull();
    expect(energyOf([], [], 0, 1)).toBeNull();
  });

  it('reaches a little beyond the first and the last record, and begins after a hole', () => {
    expect(energyOf(times, [5, 5, 5, 5], -100, 400)).toBeCloseTo(2.5, 6);
    expect(energyOf(times, [NaN, 5, 5, 5], 50, 300)).toBeCloseTo(1.25, 6);
  });
});
