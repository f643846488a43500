import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { FrameLoop } from './frame-loop';

const draw = vi.fn();
let loop: FrameLoop;
/** The sum of the durations of all drawings so far. */
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

describe('frame loop', () => {
  it('user input causes one drawing in next frame', () => {
    loop.invalidate();
    loop.invalidate();
    vi.advanceTimersByTime(20);
    expect(draw).toHaveBeenCalledTimes(1);
    loop.invalidate();
    vi.advanceTimersByTime(20);
    expect(draw).toHaveBeenCalledTimes(2);
  });

  it('error in one view does not stop others', () => {
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

  it('fast samples are drawn only every 240 ms', () => {
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

  it('fast stream draws updates when they arrive', () => {
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
    // The last update of a stream must also be drawn, although no further update follows.
    loop.invalidateThrottled();
    draw.mockClear();
    loop.invalidateThrottled();
    vi.advanceTimersByTime(700);
    expect(draw).toHaveBeenCalledTimes(1);
  });

  it('drawings after user input do not delay updates', () => {
    setDrawingTime(200);
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

  it('several views draw the same sample', () => {
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
      // User input redraws a single view, but all views must show the same sample.
      loops[sample % 3]?.invalidate();
      vi.advanceTimersByTime(70);
      expect(new Set(drawn).size).toBe(1);
    }
    loops.forEach((one) => one.setRunning(false));
  });

  it('hidden view is redrawn when shown again', () => {
    loop.setRunning(false);
    loop.invalidate();
    loop.invalidateThrottled();
    vi.advanceTimersByTime(1000);
    expect(draw).not.toHaveBeenCalled();
    loop.setRunning(true);
    vi.advanceTimersByTime(20);
    expect(draw).toHaveBeenCalledTimes(1);
  });

  it('slow drawing is limited, but happens every second', () => {
    const usual = countDrawingsInTenSeconds();
    expect(usual).toBeGreaterThan(30);
    setDrawingTime(10);
    const slow = countDrawingsInTenSeconds();
    expect(slow).toBeLessThan(usual * 0.7);
    setDrawingTime(200);
    const slowest = countDrawingsInTenSeconds();
    expect(slowest).toBeLessThan(slow);
    expect(slowest).toBeGreaterThanOrEqual(9);
  });

  it('drawing time limit is shared by several views', () => {
    setDrawingTime(6);
    const alone = countDrawingsInTenSeconds();
    const other = new FrameLoop(draw);
    other.setRunning(true);
    const both = vi.spyOn(loop, 'invalidateThrottled').mockImplementation(() => {
      FrameLoop.prototype.invalidateThrottled.call(loop);
      other.invalidateThrottled();
    });
    const together = countDrawingsInTenSeconds() / 2;
    both.mockRestore();
    other.setRunning(false);
    expect(together).toBeLessThan(alone * 0.7);
  });
});

/**
 * Makes each drawing take this long. Fake timers do not advance the clock while code runs, so
 * `taken_ms` is added to the time.
 */
function setDrawingTime(ms: number): void {
  draw.mockImplementation(() => {
    taken_ms += ms;
  });
  // Only after several drawings does the page know how long a drawing takes.
  countDrawingsInTenSeconds();
}

/** Returns the number of drawings in ten seconds with ten samples per second. */
function countDrawingsInTenSeconds(): number {
  draw.mockClear();
  for (let i = 0; i < 100; i += 1) {
    loop.invalidateThrottled();
    vi.advanceTimersByTime(100);
  }
  return draw.mock.calls.length;
}
