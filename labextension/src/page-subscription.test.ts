// @vitest-environment jsdom
import type { Feed } from '@gpumon/page/feed';
import { expect, it, vi } from 'vitest';

import { PageSubscription } from './page-subscription';

/** What the subscription was last set to. */
let active = true;
const unsubscribe = vi.fn();
const setTraces = vi.fn();
const feed = {
  subscribe: () => ({ setActive: (now: boolean) => (active = now), setInterval: vi.fn(), setTraces, unsubscribe }),
} as unknown as Feed;

function hide(hidden: boolean): void {
  vi.spyOn(document, 'hidden', 'get').mockReturnValue(hidden);
  document.dispatchEvent(new Event('visibilitychange'));
}

it('is active while the page is visible, and while something is measured', () => {
  const subscription = new PageSubscription(feed, { changed: () => undefined });
  expect(active).toBe(true);
  hide(true);
  expect(active).toBe(false);
  subscription.measure(250);
  expect(active).toBe(true);
  expect(setTraces).toHaveBeenLastCalledWith(true);
  subscription.measure(null);
  expect(active).toBe(false);
  expect(setTraces).toHaveBeenLastCalledWith(false);
  hide(false);
  expect(active).toBe(true);
  subscription.dispose();
  expect(unsubscribe).toHaveBeenCalledTimes(1);
  hide(true);
  expect(active).toBe(true);
});

it('starts inactive on a hidden page', () => {
  hide(true);
  new PageSubscription(feed, { changed: () => undefined });
  expect(active).toBe(false);
});
