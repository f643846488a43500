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
   * Returns the history of the displayed span and the lines of the compared span. Each is `null` if
   * it is not needed or not loaded yet. `notes` contains the note about the start of the history,
   * and the figures of the comparison.
   */
  findOrRequestSpans(need: PastNeed): {
    known: AvailableHistory | null;
    compared: SeriesSource | null;
    notes: ComponentChild;
  } {
    const isNeeded = need.metrics.length > 0 && this.isHistoryNeeded(need);
    const history = isNeeded ? this.getOrLoadPart()?.findOrRequestHistory(need) : undefined;
    const by_ms = need.state.compared_ms;
    const comparison = by_ms === null ? undefined : this.getOrLoadPart()?.compare(need, by_ms);
    return {
      known: history?.known ?? null,
      compared: comparison?.source ?? null,
      notes: (
        <>
          <div role="status">{history?.note ?? (isNeeded && this.failed)}</div>
          {comparison?.figures ?? (by_ms !== null && this.failed)}
        </>
      ),
    };
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
