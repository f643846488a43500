/**
 * What the server keeps of the past, asked for as charts need it, and kept while it may be needed
 * again.
 */

import { remembered } from '../../lib/remembered';
import { isUnbroken, type SeriesSource } from '../../lib/timeline';
import type { Event, HistorySpan } from '../../wire';
import { answerOf, type Request } from '../request';
import type { Store } from '../store';
import { JoinedSeries, PastSpan, type AskedSpan } from './past-span';

/** What charts show: a span of time, and as many points as they have room for. */
export type Need = AskedSpan;

/** What of it there is. */
export interface Known {
  source: SeriesSource;
  /** Whether the server remembers a series of this name. */
  knows: (key: string) => boolean;
  /** Points further apart than this have nothing between them. */
  gap_ms: number;
  /** Whether values are means of some time. */
  areMeans: boolean;
  /** As the server answered it. */
  answer: HistorySpan;
  /** What happened in it, and what happened since as far as it was received; the oldest first. */
  events: readonly Event[];
}

export interface PastOptions {
  request: Request;
  store: Pick<Store, 'clock' | 'timeline' | 'gap_ms' | 'events'>;
  /** Something was answered, or was not. */
  onChange: () => void;
}

/**
 * More than is shown is asked for, by this share on both sides, so that little is missing when
 * somebody moves on.
 */
const MARGIN = 0.5;
/** The server keeps readings as sampled for so long, and means of ever longer times for these. */
const REACHES_MS = [10 * 60_000, 6 * 3_600_000, 2 * 86_400_000, 30 * 86_400_000];
/** As many as the server answers. */
const MOST_POINTS = 5000;
/** A zoom by wheel or fingers is many spans; only where it comes to rest is asked for. */
const REST_MS = 120;
/** Nothing is asked again so soon after it was refused, or answered. */
const RETRY_MS = 10_000;
const AGAIN_MS = 2000;
/** Spans that are kept. */
const KEPT = 12;
/** Points may be so much wider than asked for, as a share. */
const COARSER = 1.6;
/**
 * What was received since may be so large a part of what is shown before it is asked for as means.
 */
const TAIL = 0.05;
const LEAST_TAIL_MS = 60_000;

export class Past {
  /** The newest last. */
  private kept: PastSpan[] = [];
  private need: Need | null = null;
  /** What the server is being asked. */
  private asking: { asked: AskedSpan; abort: AbortController } | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** What was last asked and answered, and until when it is not asked again. */
  private answered: { need: Need; why: string | null; until_ms: number } | null = null;
  private readonly events = remembered(mergedEvents);
  private revision = 0;
  private joined: { of: readonly unknown[]; series: JoinedSeries } | null = null;

  constructor(private readonly options: PastOptions) {}

  /** Why nothing more is known; `null` where it is, or will be. */
  get problem(): string | null {
    return this.answered?.why ?? null;
  }

  /** Whether more will be known soon. */
  get isLoading(): boolean {
    return this.asking !== null || this.timer !== undefined;
  }

  /** What is known of what is needed, and asks for the rest; `null` where that is nothing. */
  known(need: Need): Known | null {
    this.need = need;
    const satisfying = this.kept.findLast((span) => this.satisfies(span, need));
    if (satisfying === undefined) {
      this.schedule();
    }
    const best = satisfying ?? this.nearest(need);
    if (best === null) {
      return null;
    }
    const { timeline } = this.options.store;
    const of = [
      best,
      timeline.revision,
      timeline.times_ms.at(-1),
      need.to_ms > best.answer.to_ms ? need.to_ms : 0,
    ];
    if (this.joined?.of.every((value, i) => value === of[i]) !== true) {
      // A picture differs where the span does, or what was received before; what was received last
      // moves its end.
      const isOther = this.joined?.of[0] !== best || this.joined.of[1] !== timeline.revision;
      this.revision += isOther ? 1 : 0;
      this.joined = {
        of,
        series: new JoinedSeries(best, timeline, `past ${this.revision}`, need.to_ms),
      };
    }
    const { gap_ms, areMeans, answer } = best;
    const events = this.events(answer.events, this.options.store.events);
    const knows = (key: string): boolean => best.series.has(key);
    return { source: this.joined.series, knows, gap_ms, areMeans, answer, events };
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.asking?.abort.abort();
    this.asking = null;
  }

  private satisfies({ asked, areMeans }: PastSpan, need: Need): boolean {
    const isFine = !areMeans || stepOf(asked) <= COARSER * stepOf(need);
    const isAll = need.metrics.every((metric) => asked.metrics.includes(metric));
    return isFine && isAll && asked.from_ms <= need.from_ms && this.reaches(asked.to_ms, need);
  }

  /** Whether what was told up to `end_ms` goes on with what was received since. */
  private reaches(end_ms: number, { from_ms, to_ms }: Need): boolean {
    if (to_ms <= end_ms) {
      return true;
    }
    const { times_ms } = this.options.store.timeline;
    const isShort = to_ms - end_ms <= Math.max(TAIL * (to_ms - from_ms), LEAST_TAIL_MS);
    const newest_ms = times_ms.at(-1) ?? 0;
    return (
      isShort && isUnbroken(times_ms, end_ms, Math.min(to_ms, newest_ms), this.options.store.gap_ms)
    );
  }

  /** What shows most of what is needed, while the rest is not there yet. */
  private nearest({ from_ms, to_ms, ...need }: Need): PastSpan | null {
    const step_ms = stepOf({ from_ms, to_ms, ...need });
    let best: { span: PastSpan; merit: number } | null = null;
    for (const span of this.kept) {
      const overlap_ms =
        Math.min(to_ms, span.answer.to_ms) - Math.max(from_ms, span.answer.from_ms);
      // Half of it in fine points says as much as all of it in points four times as wide.
      const merit =
        (overlap_ms / (to_ms - from_ms)) * Math.sqrt(Math.min(1, step_ms / stepOf(span.asked)));
      if (overlap_ms > 0 && merit >= (best?.merit ?? 0)) {
        best = { span, merit };
      }
    }
    return best?.span ?? null;
  }

  private schedule(): void {
    const { need, answered } = this;
    const isAnswered = answered !== null && need !== null && isAlike(answered.need, need);
    if (
      this.timer !== undefined ||
      need === null ||
      (isAnswered && Date.now() < answered.until_ms)
    ) {
      return;
    }
    // The first is asked for at once; others when somebody has stopped zooming.
    const isFirst = answered === null && this.asking === null;
    this.timer = setTimeout(() => this.rest(need), isFirst ? 0 : REST_MS);
  }

  /** Asks where the need is still that of `before`. */
  private rest(before: Need): void {
    this.timer = undefined;
    const { need } = this;
    if (need === null) {
      return;
    }
    if (!isAlike(before, need)) {
      this.schedule();
      return;
    }
    const { asking } = this;
    if (asking === null || !covers(asking.asked, need)) {
      asking?.abort.abort();
      void this.ask(need);
    }
  }

  private async ask(need: Need): Promise<void> {
    const { store, request, onChange } = this.options;
    const margin_ms = MARGIN * (need.to_ms - need.from_ms);
    const now_ms = store.clock.now();
    // A margin of which less is known would make all of it coarser.
    const reach_ms = REACHES_MS.find((reach) => need.from_ms >= now_ms - reach) ?? Infinity;
    const from_ms = Math.round(Math.max(need.from_ms - margin_ms, now_ms - reach_ms));
    const to_ms = Math.round(Math.min(now_ms, need.to_ms + margin_ms));
    const points = Math.min(
      MOST_POINTS,
      Math.ceil((need.points * (to_ms - from_ms)) / (need.to_ms - need.from_ms)),
    );
    const asked: AskedSpan = { from_ms, to_ms, points, metrics: need.metrics };
    const abort = new AbortController();
    const asking = { asked, abort };
    this.asking = asking;
    const query = new URLSearchParams({
      from_ms: String(Math.max(0, from_ms)),
      to_ms: String(to_ms),
      points: String(points),
      metrics: need.metrics.join(),
    });
    const { json, why } = await answerOf(
      request(`api/v1/history?${query}`, { signal: abort.signal }),
    );
    if (this.asking !== asking) {
      return;
    }
    this.asking = null;
    this.answered = { need, why, until_ms: Date.now() + (why === null ? AGAIN_MS : RETRY_MS) };
    if (why === null) {
      const span = new PastSpan(asked, json as HistorySpan, store.gap_ms);
      this.kept = [...this.kept.filter((old) => !replaces(asked, old.asked)), span].slice(-KEPT);
    }
    onChange();
  }
}

/** The time of one point. */
function stepOf({
  from_ms,
  to_ms,
  points,
}: Pick<AskedSpan, 'from_ms' | 'to_ms' | 'points'>): number {
  return (to_ms - from_ms) / points;
}

/** Whether a live span moved a little, or nothing did. */
function isAlike(a: Need, b: Need): boolean {
  const length_ms = a.to_ms - a.from_ms;
  const near = (x: number, y: number): boolean => Math.abs(x - y) <= length_ms * 0.01 + REST_MS;
  return (
    near(a.from_ms, b.from_ms) && near(a.to_ms, b.to_ms) && a.metrics.join() === b.metrics.join()
  );
}

function covers(asked: AskedSpan, need: Need): boolean {
  return (
    asked.from_ms <= need.from_ms &&
    asked.to_ms + LEAST_TAIL_MS >= need.to_ms &&
    stepOf(asked) <= COARSER * stepOf(need) &&
    need.metrics.every((metric) => asked.metrics.includes(metric))
  );
}

/** Whether an older span says nothing that a newer one does not. */
function replaces(newer: AskedSpan, older: AskedSpan): boolean {
  return (
    newer.from_ms <= older.from_ms &&
    newer.to_ms >= older.to_ms &&
    stepOf(newer) <= stepOf(older) &&
    older.metrics.every((metric) => newer.metrics.includes(metric))
  );
}

/** Each once: those of a span's last minutes are known from the stream, too. */
function mergedEvents(past: readonly Event[], live: readonly Event[]): Event[] {
  const all = new Map([...past, ...live].map((event) => [JSON.stringify(event), event]));
  return [...all.values()].sort((a, b) => a.at_ms - b.at_ms);
}
