// @vitest-environment jsdom
import type { Feed } from '@gpumon/page/feed';
import { expect, it, vi } from 'vitest';

import { PageSubscription } from './page-subscription';

/** The latest options of the subscription. */
const asked = { active: true, traces: false };
const unsubscribe = vi.fn();
const feed = {
  subscribe: () => ({
    update: (changes: Partial<typeof asked>) => Object.assign(asked, changes),
    unsubscribe,
  }),
} as unknown as Feed;

function setPageHidden(hidden: boolean): void {
  vi.spyOn(document, 'hidden', 'get').mockReturnValue(hidden);
  document.dispatchEvent(new Event('visibilitychange'));
}

it('subscription is active while page visible or measuring', () => {
  const subscription = new PageSubscription(feed, () => undefined);
  expect(asked.active).toBe(true);
  setPageHidden(true);
  expect(asked.active).toBe(false);
  subscription.setMeasurementInterval(250);
  expect(asked.active).toBe(true);
  expect(asked.traces).toBe(true);
  subscription.setMeasurementInterval(null);
  expect(asked.active).toBe(false);
  expect(asked.traces).toBe(false);
  setPageHidden(false);
  expect(asked.active).toBe(true);
  subscription.dispose();
  expect(unsubscribe).toHaveBeenCalledTimes(1);
  setPageHidden(true);
  expect(asked.active).toBe(true);
});

it('subscription starts inactive on a hidden page', () => {
  setPageHidden(true);
  new PageSubscription(feed, () => undefined);
  expect(asked.active).toBe(false);
});
