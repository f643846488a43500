import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { FrameLoop } from './frame-loop';

const draw = vi.fn();
let loop: FrameLoop;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('requestAnimationFrame', (next: () => void) => setTimeout(next, 16));
  vi.stubGlobal('cancelAnimationFrame', clearTimeout);
  draw.mockReset();
  loop = new FrameLoop(draw);
  loop.setRunning(true);
});
afterEach(() => {
  loop.setRunning(false);
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

  it('of ten samples a second is of every third, the first at once and the last in the end', () => {
    for (let i = 0; i < 20; i += 1) {
      loop.invalidateCalmly();
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
    loop.invalidateCalmly();
    vi.advanceTimersByTime(600);
    expect(draw.mock.calls.length).toBeGreaterThan(before);
  });

  it('does not happen while nobody looks, and then at once', () => {
    loop.setRunning(false);
    loop.invalidate();
    loop.invalidateCalmly();
    vi.advanceTimersByTime(1000);
    expect(draw).not.toHaveBeenCalled();
    loop.setRunning(true);
    vi.advanceTimersByTime(20);
    expect(draw).toHaveBeenCalledTimes(1);
  });
});
