// @vitest-environment jsdom
import type { Feed } from '@gpumon/page/feed';
import { expect, it, vi } from 'vitest';

import { RestingReader } from './resting';

/** Whether the reader looks, as far as the feed was told. */
let looking = true;
const leave = vi.fn();
const setTraces = vi.fn();
const feed = {
  join: () => ({ setLooking: (now: boolean) => (looking = now), setInterval: vi.fn(), setTraces, leave }),
} as unknown as Feed;

function hide(hidden: boolean): void {
  vi.spyOn(document, 'hidden', 'get').mockReturnValue(hidden);
  document.dispatchEvent(new Event('visibilitychange'));
}

it('looks while the page is seen, and while something has to be measured', () => {
  const reader = new RestingReader(feed, { changed: () => undefined });
  expect(looking).toBe(true);
  hide(true);
  expect(looking).toBe(false);
  reader.measure(250);
  expect(looking).toBe(true);
  expect(setTraces).toHaveBeenLastCalledWith(true);
  reader.measure(null);
  expect(looking).toBe(false);
  expect(setTraces).toHaveBeenLastCalledWith(false);
  hide(false);
  expect(looking).toBe(true);
  reader.leave();
  expect(leave).toHaveBeenCalledTimes(1);
  hide(true);
  expect(looking).toBe(true);
});

it('rests from the beginning on a page that is opened behind another', () => {
  hide(true);
  new RestingReader(feed, { changed: () => undefined });
  expect(looking).toBe(false);
});
