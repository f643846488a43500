/** A subscription to a feed that is inactive while the page is hidden. */

import type { Feed, FeedListener, Subscription } from '@gpumon/page/feed';

/** Activates itself whenever the page is visible. */
export class PageSubscription {
  private readonly subscription: Subscription;
  private measuring = false;

  constructor(feed: Feed, listener: FeedListener) {
    this.subscription = feed.subscribe(listener);
    document.addEventListener('visibilitychange', this.updateActive);
    this.updateActive();
  }

  /**
   * What goes on has to be measured, whether it is seen or not, at least so often and with what the
   * driver records in between; `null` ends that.
   */
  measure(interval_ms: number | null): void {
    this.measuring = interval_ms !== null;
    this.subscription.update({ interval_ms, traces: this.measuring });
    this.updateActive();
  }

  dispose(): void {
    document.removeEventListener('visibilitychange', this.updateActive);
    this.subscription.unsubscribe();
  }

  private readonly updateActive = (): void =>
    this.subscription.update({ active: this.measuring || !document.hidden });
}
