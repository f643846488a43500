/** Where charts get the past from that the stream does not tell: the server's history, loaded when it is first needed. */

import { isUnbroken } from '../../lib/timeline';
import { isPaused, rangeOf, type DashboardState } from '../../model/dashboard/state';
import type { Known, Past } from '../../model/history/past';
import type { Request } from '../../model/request';
import type { Store } from '../../model/store';
import { part } from '../part';

/** As much as the stream tells as it was sampled. */
const STREAMED_MS = 10 * 60_000;
/** Charts that have not been seen yet may be so wide, in pixels of the device. */
const USUAL_WIDTH = 800;
/** A point each so many pixels of the device is as much as a line shows. */
const POINT_PX = 2;

export class PastSource {
  private past: Past | null = null;
  private isRequested = false;
  private failure: string | null = null;

  constructor(
    private readonly store: Store,
    /** Without it, there is only what the stream tells. */
    private readonly request: Request | undefined,
    private readonly onChange: () => void,
  ) {}

  /** What to say where nothing is known because something is wrong. */
  get problem(): string | null {
    return this.failure ?? this.past?.problem ?? null;
  }

  get isLoading(): boolean {
    return this.isRequested && (this.past?.isLoading ?? this.failure === null);
  }

  /** What is known of the span that is shown; `null` where the stream told all of it, or nothing is known yet. */
  known(state: DashboardState, now_ms: number, metrics: () => readonly string[], width: number): Known | null {
    if (this.request === undefined || !this.isNeeded(state, now_ms)) {
      return null;
    }
    if (!this.isRequested) {
      this.isRequested = true;
      void this.load(this.request);
    }
    const [from_ms, to_ms] = rangeOf(state, now_ms);
    const points = Math.ceil((width || USUAL_WIDTH) / POINT_PX);
    return this.past?.known({ from_ms, to_ms, points, metrics: metrics() }) ?? null;
  }

  dispose(): void {
    this.past?.dispose();
    this.past = null;
    this.failure = '';
  }

  /** Whether more is shown than the stream told, or it left something out: while nobody looked, it was paused. */
  private isNeeded(state: DashboardState, now_ms: number): boolean {
    const [from_ms, to_ms] = rangeOf(state, now_ms);
    const { timeline, gap_ms } = this.store;
    const isStreamed = !isPaused(state) || (timeline.times_ms[0] ?? Infinity) <= from_ms;
    return to_ms - from_ms > STREAMED_MS || !isStreamed || !isUnbroken(timeline.times_ms, from_ms, to_ms, gap_ms);
  }

  private async load(request: Request): Promise<void> {
    try {
      const { Past: Loaded } = await part(import('../../model/history/past'));
      if (this.failure === null) {
        const { store, onChange } = this;
        this.past = new Loaded({ request, store, onChange });
      }
    } catch (error) {
      this.failure = error instanceof Error ? error.message : String(error);
    }
    this.onChange();
  }
}
