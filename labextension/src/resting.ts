/** A reader of a feed that rests while nobody can see the page. */

import type { Feed, FeedListener, FeedReader } from '@gpumon/page/feed';

/** A place among the readers of a feed, as the view has one; but it looks by itself whenever the page can be seen. */
export class RestingReader {
  private readonly reader: FeedReader;
  private awake = false;

  constructor(feed: Feed, listener: FeedListener) {
    this.reader = feed.join(listener);
    document.addEventListener('visibilitychange', this.look);
    this.look();
  }

  /**
   * What goes on has to be measured, whether it is seen or not, at least so often and with what the driver records in
   * between; `null` ends that.
   */
  measure(interval_ms: number | null): void {
    this.awake = interval_ms !== null;
    this.reader.setInterval(interval_ms);
    this.reader.setTraces(this.awake);
    this.look();
  }

  leave(): void {
    document.removeEventListener('visibilitychange', this.look);
    this.reader.leave();
  }

  private readonly look = (): void => {
    this.reader.setLooking(this.awake || !document.hidden);
  };
}
