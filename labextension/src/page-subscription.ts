/** Feed subscriptions that are inactive while the page is hidden. */

import type { Feed, FeedListener, Subscription } from '@gpumon/page/feed';

/** A subscription that is active while the page is visible or a measurement runs. */
export class PageSubscription {
  private readonly subscription: Subscription;
  private measuring = false;

  constructor(feed: Feed, listener: FeedListener) {
    this.subscription = feed.subscribe(listener);
    document.addEventListener('visibilitychange', this.updateActive);
    this.updateActive();
  }

  /**
   * Starts a measurement, which continues while the page is hidden. It requests samples at
   * intervals of at most `interval_ms`, and the driver's traces between these samples. `null` stops
   * the measurement.
   */
  setMeasurementInterval(interval_ms: number | null): void {
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
