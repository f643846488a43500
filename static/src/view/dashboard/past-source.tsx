import type { ComponentChild } from 'preact';

import { hasNoGaps, type SeriesSource } from '../../lib/timeline';
import { isPaused, displayedRange, STREAMED_MS } from '../../model/dashboard/state';
import type { AvailableHistory } from '../../model/history';
import type { Request } from '../../model/request';
import type { Store } from '../../model/store';
import { FailedPart, loadPart } from '../part';
import type { PastNeed, PastPart } from './past-part';

/**
 * The server's history, for charts that show more than the stream has. Its code is loaded on
 * demand.
 */
export class PastSource {
  private loaded: PastPart | null = null;
  private failed: ComponentChild = null;
  private isRequested = false;
  private isOver = false;
  private note: ComponentChild = null;
  private figures: ComponentChild = null;

  constructor(
    private readonly store: Store,
    /** Sends HTTP requests. If it is missing, only the streamed samples are available. */
    private readonly request: Request | undefined,
    private readonly invalidate: () => void,
    /** Called to show everything since the first recorded time. */
    private readonly onAll: (oldest_ms: number) => void,
  ) {}

  get isLoading(): boolean {
    return this.loaded?.isLoading ?? (this.isRequested && this.failed === null);
  }

  /** The first recorded time; `null` if it is unknown. */
  get oldest_ms(): number | null {
    return this.loaded?.oldest_ms ?? null;
  }

  /**
   * Returns the history of the displayed span, or `null` if the stream covers the span or the
   * history is not loaded yet.
   */
  findOrRequestHistory(need: PastNeed): AvailableHistory | null {
    const isNeeded = need.metrics.length > 0 && this.isHistoryNeeded(need);
    const found = isNeeded ? this.getOrLoadPart()?.findOrRequestHistory(need) : undefined;
    this.note = found?.note ?? (isNeeded && this.failed);
    return found?.known ?? null;
  }

  /**
   * Returns the lines of the compared span, or `null` if there is no comparison or the lines are
   * not loaded yet.
   */
  findComparedSeries(need: PastNeed): SeriesSource | null {
    const by_ms = need.state.compared_ms;
    const compared = by_ms === null ? undefined : this.getOrLoadPart()?.compare(need, by_ms);
    this.figures = compared?.figures ?? (by_ms !== null && this.failed);
    return compared?.source ?? null;
  }

  /** Renders the note about the start of the history, and the figures of the comparison. */
  renderNotes(): ComponentChild {
    return (
      <>
        <div role="status">{this.note}</div>
        {this.figures}
      </>
    );
  }

  dispose(): void {
    this.isOver = true;
    this.loaded?.dispose();
  }

  /**
   * Returns whether the stream cannot provide the displayed span, because the span is too long or
   * too old, or because the stream was interrupted.
   */
  private isHistoryNeeded({ state, now_ms }: PastNeed): boolean {
    const [from_ms, to_ms] = displayedRange(state, now_ms);
    const { timeline, gap_ms } = this.store;
    const isStreamed = !isPaused(state) || (timeline.times_ms[0] ?? Infinity) <= from_ms;
    return (
      to_ms - from_ms > STREAMED_MS ||
      !isStreamed ||
      !hasNoGaps(timeline.times_ms, from_ms, to_ms, gap_ms)
    );
  }

  private getOrLoadPart(): PastPart | null {
    if (!this.isRequested && this.request !== undefined) {
      this.isRequested = true;
      void this.load(this.request);
    }
    return this.loaded;
  }

  private async load(request: Request): Promise<void> {
    const { store, invalidate, onAll } = this;
    try {
      const { PastPart } = await loadPart(import('./past-part'));
      this.loaded = new PastPart({ request, store, onChange: invalidate }, onAll);
    } catch (error) {
      this.failed = <FailedPart error={error} />;
    }
    if (this.isOver) {
      this.loaded?.dispose();
    } else {
      invalidate();
    }
  }
}
