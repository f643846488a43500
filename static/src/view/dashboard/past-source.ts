/** Where charts get the past from that the stream does not tell: the server's history, loaded when it is first needed. */

import { h, setShown } from '../../lib/dom';
import { isUnbroken } from '../../lib/timeline';
import { isPaused, rangeOf, type DashboardState } from '../../model/dashboard/state';
import type { Known, Past } from '../../model/history/past';
import type { GpuState } from '../../model/gpu';
import type { SeriesSource } from '../../lib/timeline';
import type { Request } from '../../model/request';
import type { Store } from '../../model/store';
import { failedPart, part } from '../part';
import type { Comparison } from './comparison';
import type { PastNote } from './past-note';

/** As much as the stream tells as it was sampled. */
const STREAMED_MS = 10 * 60_000;
/** Charts that have not been seen yet may be so wide, in pixels of the device. */
const USUAL_WIDTH = 800;
/** A point each so many pixels of the device is as much as a line shows. */
const POINT_PX = 2;

export interface PastListener {
  invalidate: () => void;
  /** All that is known is to be shown, from its first moment on. */
  onAll: (oldest_ms: number) => void;
}

export class PastSource {
  /** Says how far back the past is known; empty until it is needed. */
  readonly note = h('div', { role: 'status' });
  /** Says how what is shown differs from what it is compared with; empty until that is asked for. */
  readonly figures = h('div');
  private comparison: Comparison | null = null;
  private past: Past | null = null;
  private view: PastNote | null = null;
  private isRequested = false;
  private isOver = false;

  constructor(
    private readonly store: Store,
    /** Without it, there is only what the stream tells. */
    private readonly request: Request | undefined,
    private readonly listener: PastListener,
  ) {}

  get isLoading(): boolean {
    return this.past?.isLoading ?? (this.isRequested && this.note.firstChild === null);
  }

  /** What is known of the span that is shown; `null` where the stream told all of it, or nothing is known yet. */
  known(
    state: DashboardState,
    now_ms: number,
    metrics: readonly string[],
    width: number,
  ): Known | null {
    const isNeeded =
      this.request !== undefined && metrics.length > 0 && this.isNeeded(state, now_ms);
    const [from_ms, to_ms] = rangeOf(state, now_ms);
    // What a stream could have told needs no explanation, so that a pause moves no chart.
    const problem = this.past?.problem ?? null;
    setShown(this.note, isNeeded && (from_ms < now_ms - STREAMED_MS || problem !== null));
    if (!isNeeded) {
      return null;
    }
    this.begin(this.request);
    const points = pointsOf(width);
    const known = this.past?.known({ from_ms, to_ms, points, metrics }) ?? null;
    this.view?.update({ from_ms, to_ms, now_ms, answer: known?.answer ?? null, problem });
    return known;
  }

  /** The lines of the span that what is shown is compared with; `null` where that is none, or nothing is known of it yet. */
  compared(
    state: DashboardState,
    now_ms: number,
    metrics: readonly string[],
    gpus: readonly GpuState[],
    width: number,
  ): SeriesSource | null {
    const by_ms = state.compared_ms;
    setShown(this.figures, by_ms !== null);
    if (by_ms === null || this.request === undefined) {
      return null;
    }
    this.begin(this.request);
    const [from_ms, to_ms] = rangeOf(state, now_ms);
    return (
      this.comparison?.update({
        from_ms,
        to_ms,
        now_ms,
        by_ms,
        points: pointsOf(width),
        metrics,
        gpus,
      }) ?? null
    );
  }

  dispose(): void {
    this.comparison?.dispose();
    this.past?.dispose();
    this.past = null;
    this.isOver = true;
  }

  /** Whether more is shown than the stream told, or it left something out: while nobody looked, it was paused. */
  private isNeeded(state: DashboardState, now_ms: number): boolean {
    const [from_ms, to_ms] = rangeOf(state, now_ms);
    const { timeline, gap_ms } = this.store;
    const isStreamed = !isPaused(state) || (timeline.times_ms[0] ?? Infinity) <= from_ms;
    return (
      to_ms - from_ms > STREAMED_MS ||
      !isStreamed ||
      !isUnbroken(timeline.times_ms, from_ms, to_ms, gap_ms)
    );
  }

  private begin(request: Request): void {
    if (!this.isRequested) {
      this.isRequested = true;
      void this.load(request);
    }
  }

  private async load(request: Request): Promise<void> {
    const { store, listener } = this;
    try {
      const loaded = await part(import('./past-part'));
      if (this.isOver) {
        return;
      }
      const options = { request, store, onChange: listener.invalidate };
      this.past = new loaded.Past(options);
      this.comparison = new loaded.Comparison(options);
      this.figures.append(this.comparison.element);
      this.view = new loaded.PastNote(listener.onAll);
      this.note.append(this.view.element);
    } catch (error) {
      this.note.append(failedPart(error));
    }
    listener.invalidate();
  }
}

function pointsOf(width: number): number {
  return Math.ceil((width || USUAL_WIDTH) / POINT_PX);
}
