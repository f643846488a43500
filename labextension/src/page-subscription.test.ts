// @vitest-environment jsdom
import type { Feed } from '@gpumon/page/feed';
import { expect, it, vi } from 'vitest';

import { PageSubscription } from './page-subscription';

/** What the subscription asks for. */
const asked = { active: true, traces: false };
const unsubscribe = vi.fn();
const feed = {
  subscribe: () => ({
    update: (changes: Partial<typeof asked>) => Object.assign(asked, changes),
    unsubscribe,
  }),
} as unknown as Feed;

function hide(hidden: boolean): void {
  vi.spyOn(document, 'hidden', 'get').mockReturnValue(hidden);
  document.dispatchEvent(new Event('visibilitychange'));
}

it('is active while the page is visible, and while something is measured', () => {
  const subscription = new PageSubscription(feed, () => undefined);
  expect(asked.active).toBe(true);
  hide(true);
  expect(asked.active).toBe(false);
  subscription.measure(250);
  expect(asked.active).toBe(true);
  expect(asked.traces).toBe(true);
  subscription.measure(null);
  expect(asked.active).toBe(false);
  expect(asked.traces).toBe(false);
  hide(false);
  expect(asked.active).toBe(true);
  subscription.dispose();
  expect(unsubscribe).toHaveBeenCalledTimes(1);
  hide(true);
  expect(asked.active).toBe(true);
});

it('starts inactive on a hidden page', () => {
  hide(true);
  new PageSubscription(feed, () => undefined);
  expect(asked.active).toBe(false);
});
