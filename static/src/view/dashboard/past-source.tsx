import type { ComponentChild } from 'preact';

import { isUnbroken, type SeriesSource } from '../../lib/timeline';
import { isPaused, rangeOf, type DashboardState } from '../../model/dashboard/state';
import type { GpuState } from '../../model/gpu';
import type { Known } from '../../model/history/past';
import type { Request } from '../../model/request';
import type { Store } from '../../model/store';
import { FailedPart, part } from '../part';
import type { PastPart } from './past-part';

/** The stream has this much of the past as it was sampled. */
const STREAMED_MS = 10 * 60_000;
/** The assumed width of charts that are not seen yet, in pixels of the device. */
const USUAL_WIDTH = 800;
/** The pixels of the device that one point of a line has. */
const POINT_PX = 2;

/** The content of charts, and their width in pixels of the device. */
export interface PastNeed {
  state: DashboardState;
  now_ms: number;
  metrics: readonly string[];
  gpus: readonly GpuState[];
  width: number;
}

export interface PastListener {
  invalidate: () => void;
  /** Everything from this moment on is to be shown. */
  onAll: (oldest_ms: number) => void;
}

/** The server's history, for charts of more than the stream has. Its code is loaded on demand. */
export class PastSource {
  private loaded: PastPart | null = null;
  private failed: ComponentChild = null;
  private isRequested = false;
  private isOver = false;
  private note: ComponentChild = null;
  private figures: ComponentChild = null;

  constructor(
    private readonly store: Store,
    /** Without it, there is only what the stream has. */
    private readonly request: Request | undefined,
    private readonly listener: PastListener,
  ) {}

  get isLoading(): boolean {
    return this.loaded?.past.isLoading ?? (this.isRequested && this.failed === null);
  }

  /** Returns the record of the shown span; `null` if the stream has it, or until it is loaded. */
  findKnown({ state, now_ms, metrics, width }: PastNeed): Known | null {
    this.note = null;
    if (this.request === undefined || metrics.length === 0 || !this.isNeeded(state, now_ms)) {
      return null;
    }
    this.note = this.failed;
    const loaded = this.loadPart(this.request);
    const [from_ms, to_ms] = rangeOf(state, now_ms);
    const known = loaded?.past.known({ from_ms, to_ms, points: pointsOf(width), metrics }) ?? null;
    const problem = loaded?.past.problem ?? null;
    // A gap in what was streamed needs no explanation, so that a pause moves no chart.
    if (loaded !== null && (from_ms < now_ms - STREAMED_MS || problem !== null)) {
      const { onAll } = this.listener;
      const answer = known?.answer ?? null;
      this.note = loaded.renderNote({ from_ms, to_ms, now_ms, answer, problem, onAll });
    }
    return known;
  }

  /** Returns the lines to compare with; `null` without a comparison, or until they are loaded. */
  findCompared({ state, now_ms, metrics, gpus, width }: PastNeed): SeriesSource | null {
    const by_ms = state.compared_ms;
    this.figures = null;
    if (by_ms === null || this.request === undefined) {
      return null;
    }
    this.figures = this.failed;
    const loaded = this.loadPart(this.request);
    if (loaded === null) {
      return null;
    }
    const [from_ms, to_ms] = rangeOf(state, now_ms);
    const span = { from_ms, to_ms, now_ms, by_ms, points: pointsOf(width), metrics, gpus };
    const { source, figures } = loaded.compare(span);
    this.figures = figures;
    return source;
  }

  /** Renders the reach of the history, and the comparison of both spans. */
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

  /** Whether more is shown than the stream has, or the stream was interrupted. */
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

  private loadPart(request: Request): PastPart | null {
    if (!this.isRequested) {
      this.isRequested = true;
      void this.load(request);
    }
    return this.loaded;
  }

  private async load(request: Request): Promise<void> {
    const { store, listener } = this;
    try {
      const loaded = await part(import('./past-part'));
      if (!this.isOver) {
        this.loaded = new loaded.PastPart({ request, store, onChange: listener.invalidate });
      }
    } catch (error) {
      this.failed = <FailedPart error={error} />;
    }
    if (!this.isOver) {
      listener.invalidate();
    }
  }
}

function pointsOf(width: number): number {
  return Math.ceil((width || USUAL_WIDTH) / POINT_PX);
}
