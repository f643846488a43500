import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { FrameLoop } from './frame-loop';

const draw = vi.fn();
let loop: FrameLoop;
/** What drawings have taken so far. */
let taken_ms = 0;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('requestAnimationFrame', (next: () => void) => setTimeout(next, 16));
  vi.stubGlobal('cancelAnimationFrame', clearTimeout);
  const clock = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => clock() + taken_ms);
  draw.mockReset();
  loop = new FrameLoop(draw);
  loop.setRunning(true);
});
afterEach(() => {
  loop.setRunning(false);
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe('drawing', () => {
  it('of what somebody did comes with the next frame, once', () => {
    loop.invalidate();
    loop.invalidate();
    vi.advanceTimersByTime(20);
    expect(draw).toHaveBeenCalledTimes(1);
    loop.invalidate();
    vi.advanceTimersByTime(20);
    expect(draw).toHaveBeenCalledTimes(2);
  });

  it('goes on with the other views where one fails', () => {
    const report = vi.fn();
    vi.stubGlobal('reportError', report);
    const failing = new FrameLoop(() => {
      throw new Error('a bug');
    });
    const last = new FrameLoop(draw);
    for (const each of [failing, last]) {
      each.setRunning(true);
      each.invalidate();
    }
    vi.advanceTimersByTime(20);
    expect([draw.mock.calls.length, report.mock.calls.length]).toEqual([1, 1]);
    failing.setRunning(false);
    last.setRunning(false);
  });

  it('of ten samples a second is of the newest, every 240 ms', () => {
    for (let i = 0; i < 20; i += 1) {
      loop.invalidateThrottled();
      if (i === 0) {
        vi.advanceTimersByTime(20);
        expect(draw).toHaveBeenCalledTimes(1);
        vi.advanceTimersByTime(80);
      } else {
        vi.advanceTimersByTime(100);
      }
    }
    expect(draw.mock.calls.length).toBeGreaterThanOrEqual(6);
    expect(draw.mock.calls.length).toBeLessThanOrEqual(9);
    const before = draw.mock.calls.length;
    loop.invalidateThrottled();
    vi.advanceTimersByTime(600);
    expect(draw.mock.calls.length).toBeGreaterThan(before);
  });

  it('of a fast stream is of an update that has just come', () => {
    let came_ms = 0;
    const ages: number[] = [];
    draw.mockImplementation(() => ages.push(performance.now() - came_ms));
    for (let i = 0; i < 50; i += 1) {
      came_ms = performance.now();
      loop.invalidateThrottled();
      vi.advanceTimersByTime(i % 2 === 0 ? 90 : 110);
    }
    expect(ages.length).toBeGreaterThan(12);
    expect(Math.max(...ages)).toBeLessThan(20);
    // It ends, and its last update is seen.
    loop.invalidateThrottled();
    draw.mockClear();
    loop.invalidateThrottled();
    vi.advanceTimersByTime(700);
    expect(draw).toHaveBeenCalledTimes(1);
  });

  it('of a sample is not put off by what was drawn for another reason', () => {
    takes(200);
    for (let i = 0; i < 5; i += 1) {
      vi.advanceTimersByTime(950);
      loop.invalidate();
      vi.advanceTimersByTime(50);
      draw.mockClear();
      loop.invalidateThrottled();
      vi.advanceTimersByTime(20);
      expect(draw).toHaveBeenCalledTimes(1);
    }
  });

  it('of several views is of the same moment', () => {
    const drawn = [0, 0, 0];
    let sample = 0;
    const loops = drawn.map((_, view) => {
      const one = new FrameLoop(() => {
        drawn[view] = sample;
      });
      one.setRunning(true);
      return one;
    });
    for (sample = 1; sample < 50; sample += 1) {
      loops.forEach((one) => one.invalidateThrottled());
      vi.advanceTimersByTime(30);
      // Somebody moves the pointer over one of them.
      loops[sample % 3]?.invalidate();
      vi.advanceTimersByTime(70);
      expect(new Set(drawn).size).toBe(1);
    }
    loops.forEach((one) => one.setRunning(false));
  });

  it('does not happen while hidden, and then at once', () => {
    loop.setRunning(false);
    loop.invalidate();
    loop.invalidateThrottled();
    vi.advanceTimersByTime(1000);
    expect(draw).not.toHaveBeenCalled();
    loop.setRunning(true);
    vi.advanceTimersByTime(20);
    expect(draw).toHaveBeenCalledTimes(1);
  });

  it('takes a fiftieth of the time at most, and once a second it is always allowed', () => {
    const usual = drawnInTenSeconds();
    expect(usual).toBeGreaterThan(30);
    takes(10);
    const slow = drawnInTenSeconds();
    expect(slow).toBeLessThan(usual * 0.7);
    takes(200);
    const slowest = drawnInTenSeconds();
    expect(slowest).toBeLessThan(slow);
    expect(slowest).toBeGreaterThanOrEqual(9);
  });

  it('of several is shared among them', () => {
    takes(6);
    const alone = drawnInTenSeconds();
    const other = new FrameLoop(draw);
    other.setRunning(true);
    const both = vi.spyOn(loop, 'invalidateThrottled').mockImplementation(() => {
      FrameLoop.prototype.invalidateThrottled.call(loop);
      other.invalidateThrottled();
    });
    const together = drawnInTenSeconds() / 2;
    both.mockRestore();
    other.setRunning(false);
    expect(together).toBeLessThan(alone * 0.7);
  });
});

/**
 * From now on a drawing takes so long. The clock of fake timers stands still while something runs.
 */
function takes(ms: number): void {
  draw.mockImplementation(() => {
    taken_ms += ms;
  });
  // What drawings take is known after some of them.
  drawnInTenSeconds();
}

/** How many drawings there are, with ten samples a second. */
function drawnInTenSeconds(): number {
  draw.mockClear();
  for (let i = 0; i < 100; i += 1) {
    loop.invalidateThrottled();
    vi.advanceTimersByTime(100);
  }
  return draw.mock.calls.length;
}
