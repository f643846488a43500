import { describe, expect, it } from 'vitest';

import {
  DEFAULT_STATE,
  fromAddress,
  isPaused,
  moved,
  rangeOf,
  resumed,
  toAddress,
  togglePaused,
  zoomed,
} from './state';

const NOW = 1_763_635_200_000;

describe('what a dashboard shows', () => {
  it('runs with the time', () => {
    expect(rangeOf(DEFAULT_STATE, NOW)).toEqual([NOW - 120_000, NOW]);
    expect(rangeOf(DEFAULT_STATE, NOW + 5000)).toEqual([NOW - 115_000, NOW + 5000]);
  });

  it('stands still where it was held, and runs again', () => {
    const held = togglePaused(DEFAULT_STATE, NOW);
    expect(rangeOf(held, NOW + 60_000)).toEqual([NOW - 120_000, NOW]);
    expect(togglePaused(held, NOW + 60_000)).toEqual(DEFAULT_STATE);
  });

  it('is zoomed in whichever direction somebody draws, and not to nothing', () => {
    const zoom = zoomed(DEFAULT_STATE, NOW - 10_000, NOW - 30_000);
    expect(rangeOf(zoom, NOW)).toEqual([NOW - 30_000, NOW - 10_000]);
    expect(isPaused(zoom)).toBe(true);
    expect(zoomed(zoom, NOW, NOW + 3)).toBe(zoom);
    expect(resumed(zoom)).toEqual(DEFAULT_STATE);
  });

  it('is moved back, and forth up to now', () => {
    const back = moved(DEFAULT_STATE, -0.5, NOW);
    expect(rangeOf(back, NOW)).toEqual([NOW - 180_000, NOW - 60_000]);
    expect(rangeOf(moved(back, 5, NOW), NOW)).toEqual([NOW - 120_000, NOW]);
  });
});

describe('an address', () => {
  it('says only what is not usual', () => {
    expect(toAddress(DEFAULT_STATE)).toBe('');
    expect(fromAddress('')).toEqual(DEFAULT_STATE);
  });

  it('brings back what was shown', () => {
    const state = zoomed(
      {
        ...DEFAULT_STATE,
        gpus: [0, 3],
        layout: 'apart',
        charts: ['power', 'cpu'],
        hidden: ['2', 'x'],
        span_ms: 300_000,
      },
      NOW,
      NOW + 9000,
    );
    const address = toAddress(state);
    expect(address).toBe(`gpu=0,3&view=apart&charts=power,cpu&hide=2,x&span=5&from=${NOW}&to=${String(NOW + 9000)}`);
    expect(fromAddress(address)).toEqual(state);
  });

  it('of what was held is that of what was seen', () => {
    const seen = fromAddress(toAddress(togglePaused(DEFAULT_STATE, NOW)));
    expect(rangeOf(seen, NOW + 60_000)).toEqual([NOW - 120_000, NOW]);
  });

  it('with nonsense shows the rest', () => {
    expect(fromAddress('gpu=x,-1,2&charts=powr&span=-3&from=9&to=3&view=')).toEqual({ ...DEFAULT_STATE, gpus: [2] });
    expect(fromAddress('gpu=&charts=&span=x&from=1&to=Infinity')).toEqual(DEFAULT_STATE);
  });
});
