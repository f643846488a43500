/**
 * A cache of the server's history. Charts request the spans that they need, and show them together
 * with later samples. A span is kept while it may be needed again.
 */

import { memoizeLast } from '../lib/memoize';
import { indexAfter, hasNoGaps, type Extremes, type SeriesSource } from '../lib/timeline';
import type { HistorySpan, Series, Event } from '../wire';
import { seriesByKey } from './gpu';
import { readJsonResponse, type Request } from './request';
import type { Store } from './store';

/** The requested span. The server answers with the part that it has. */
export interface RequestedSpan {
  from_ms: number;
  to_ms: number;
  points: number;
  metrics: readonly string[];
}

/**
 * If two points are farther apart than this multiple of the response's resolution, there is a gap
 * between them.
 */
const GAP_STEPS = 1.5;
/** The index of a point that marks a gap. */
const GAP_INDEX = -1;

export class PastSpan {
  /** The times of the points. A gap between two points also has a time. */
  readonly times_ms: Float64Array;
  readonly gap_ms: number;
  /** Whether each point is a mean instead of a single sample. */
  readonly areMeans: boolean;
  /** For each time, the index of its point in the response, or `GAP_INDEX` for a gap. */
  readonly places: readonly number[];
  /** The received series by name. */
  readonly series: ReadonlyMap<string, Series>;

  /** If samples are more than `sampleGap_ms` apart, there is a gap between them. */
  constructor(
    readonly asked: RequestedSpan,
    readonly answer: HistorySpan,
    sampleGap_ms: number,
  ) {
    const { resolution_ms, times_ms, oldest_ms, to_ms } = answer;
    this.series = seriesByKey(answer);
    this.areMeans = [...this.series.values()].some(({ min }) => min !== undefined);
    this.gap_ms = Math.max(GAP_STEPS * resolution_ms, sampleGap_ms);
    // A mean is drawn in the middle of its time range. The time ranges of the first and the last
    // point may be shorter than the others.
    const middle = (from_ms: number): number =>
      (Math.max(from_ms, Math.min(oldest_ms, from_ms + resolution_ms)) +
        Math.max(from_ms, Math.min(to_ms, from_ms + resolution_ms))) /
      2;
    const times: number[] = [];
    const places: number[] = [];
    times_ms.forEach((time_ms, place) => {
      const at_ms = this.areMeans ? middle(time_ms) : time_ms;
      if (time_ms - (times_ms[place - 1] ?? Infinity) > this.gap_ms) {
        times.push((times.at(-1) ?? 0) + 1);
        places.push(GAP_INDEX);
      }
      times.push(at_ms);
      places.push(place);
    });
    this.times_ms = Float64Array.from(times);
    this.places = places;
  }
}

/**
 * A snapshot of a span and the live samples after it. Samples that are received later are not
 * included.
 */
export class JoinedSeries implements SeriesSource {
  readonly times_ms: Float64Array;
  /** The index of the first live sample after the span. */
  private readonly tail: number;
  /** The index in `times_ms` at which the live samples start. */
  private readonly begin: number;
  private readonly joined = new Map<string, Float64Array>();

  /** Samples after `to_ms` are omitted. */
  constructor(
    private readonly past: PastSpan,
    private readonly live: SeriesSource,
    readonly revision: string,
    to_ms: number,
  ) {
    const end_ms = past.answer.to_ms;
    const live_ms = live.times_ms;
    // One sample beyond the edge is included, so that lines extend to the edge.
    const liveEnd = to_ms <= end_ms ? 0 : Math.min(live_ms.length, indexAfter(live_ms, to_ms) + 1);
    this.tail = Math.min(liveEnd, indexAfter(live_ms, Math.max(end_ms, past.times_ms.at(-1) ?? 0)));
    const times = live_ms.subarray(this.tail, liveEnd);
    const [first] = times;
    const isApart = first !== undefined && first - end_ms > past.gap_ms;
    const hole = isApart ? [(past.times_ms.at(-1) ?? end_ms) + 1] : [];
    this.begin = past.times_ms.length + hole.length;
    this.times_ms = Float64Array.from([...past.times_ms, ...hole, ...times]);
  }

  values(key: string): Float64Array {
    return this.join(key, 'values');
  }

  readExtremes(key: string): Extremes | null {
    return this.past.series.get(key)?.min === undefined
      ? null
      : { low: this.join(key, 'min'), high: this.join(key, 'max') };
  }

  /** Returns a series of the span followed by the live values. */
  private join(key: string, part: keyof Series): Float64Array {
    const name = `${part} ${key}`;
    let joined = this.joined.get(name);
    if (joined === undefined) {
      const { places, series } = this.past;
      const past = series.get(key)?.[part] ?? [];
      joined = new Float64Array(this.times_ms.length).fill(NaN);
      joined.set(places.map((place) => past[place] ?? NaN));
      const tailEnd = this.tail + joined.length - this.begin;
      joined.set(this.live.values(key).subarray(this.tail, tailEnd), this.begin);
      this.joined.set(name, joined);
    }
    return joined;
  }
}

/**
 * The history that a chart needs: a span, and the number of points that fit into the chart's width.
 */
export type Need = RequestedSpan;

/** The known part of the requested history. */
export interface AvailableHistory {
  source: SeriesSource;
  /** Returns whether the history has a series of this name. */
  knows: (key: string) => boolean;
  /** If two points are more than this time apart, there is a gap between them. */
  gap_ms: number;
  /** Whether the values are means. */
  areMeans: boolean;
  /** The server's answer. */
  answer: HistorySpan;
  /** The events of the span and those received since then, oldest first. */
  events: readonly Event[];
}

export interface PastOptions {
  request: Request;
  store: Pick<Store, 'clock' | 'timeline' | 'gap_ms' | 'events'>;
  /** Called after each response or failure. */
  onChange: () => void;
}

/**
 * The requested span extends beyond both ends of the displayed span, each time by this share of the
 * displayed span. As a result, little is missing when the user moves the chart.
 */
const MARGIN = 0.5;
/**
 * The age up to which each tier of the server's history has data. The first tier contains samples.
 * The following tiers contain means, each over longer times than the tier before.
 */
const TIER_LENGTHS_MS = [10 * 60_000, 6 * 3_600_000, 2 * 86_400_000, 30 * 86_400_000];
/** The maximum number of points that the server returns. */
const MAX_POINTS = 5000;
/**
 * A request is sent when the user has not zoomed further for this long. Zooming with the wheel or
 * fingers passes through many spans.
 */
const SETTLE_MS = 120;
/**
 * After a failed request, the minimum delay until it is repeated. `REPEAT_MS` is the minimum delay
 * after a successful one.
 */
const RETRY_MS = 10_000;
const REPEAT_MS = 2000;
/** The maximum number of spans to keep. */
const MAX_SPANS = 12;
/**
 * The maximum distance between known points, as a multiple of the needed distance. If the distance
 * is larger, a new request is sent.
 */
const MAX_COARSENESS = 1.6;
/**
 * At the end of the displayed span, live samples follow the past span. If they fill more than this
 * share of the displayed span, a new past span is requested.
 */
const MAX_TAIL_SHARE = 0.05;
const MIN_TAIL_MS = 60_000;

export class HistoryCache {
  /** The known spans, newest last. */
  private kept: PastSpan[] = [];
  private need: Need | null = null;
  /** The pending request. */
  private asking: { asked: RequestedSpan; abort: AbortController } | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** The last completed request, and the time until which it is not repeated. */
  private answered: { need: Need; why: string | null; until_ms: number } | null = null;
  private readonly events = memoizeLast(mergeEvents);
  private revision = 0;
  private joined: { of: readonly unknown[]; series: JoinedSeries } | null = null;

  constructor(private readonly options: PastOptions) {}

  /** The reason why the last request failed; `null` if it succeeded. */
  get failureReason(): string | null {
    return this.answered?.why ?? null;
  }

  /** Whether a request is pending. */
  get isLoading(): boolean {
    return this.asking !== null || this.timer !== undefined;
  }

  /**
   * Returns the known part of the needed span, and requests the rest. Returns `null` if nothing is
   * known.
   */
  findOrRequestHistory(need: Need): AvailableHistory | null {
    this.need = need;
    const satisfying = this.kept.findLast((span) => this.satisfies(span, need));
    if (satisfying === undefined) {
      this.scheduleRequest();
    }
    const best = satisfying ?? this.findBestSpan(need);
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
      // A newer sample only extends the series, so the revision stays the same. The revision
      // changes with another past span, or when older samples are added.
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
    const isFine = !areMeans || pointInterval_ms(asked) <= MAX_COARSENESS * pointInterval_ms(need);
    const isAll = need.metrics.every((metric) => asked.metrics.includes(metric));
    return (
      isFine &&
      isAll &&
      asked.from_ms <= need.from_ms &&
      this.isContinuedByLiveSamples(asked.to_ms, need)
    );
  }

  /**
   * Returns whether live samples continue a past span from its end (`end_ms`) to the end of the
   * needed span or to the newest sample, without a gap. Returns `false` if this part of the needed
   * span is too long.
   */
  private isContinuedByLiveSamples(end_ms: number, { from_ms, to_ms }: Need): boolean {
    if (to_ms <= end_ms) {
      return true;
    }
    const { times_ms } = this.options.store.timeline;
    const isShort = to_ms - end_ms <= Math.max(MAX_TAIL_SHARE * (to_ms - from_ms), MIN_TAIL_MS);
    const newest_ms = times_ms.at(-1) ?? 0;
    return (
      isShort && hasNoGaps(times_ms, end_ms, Math.min(to_ms, newest_ms), this.options.store.gap_ms)
    );
  }

  /**
   * Returns the known span that shows most of the needed span. It is displayed until the response
   * arrives.
   */
  private findBestSpan({ from_ms, to_ms, ...need }: Need): PastSpan | null {
    const step_ms = pointInterval_ms({ from_ms, to_ms, ...need });
    let best: { span: PastSpan; merit: number } | null = null;
    for (const span of this.kept) {
      const overlap_ms =
        Math.min(to_ms, span.answer.to_ms) - Math.max(from_ms, span.answer.from_ms);
      // A span is rated by its overlap with the needed range and by its resolution. If its points
      // are four times as far apart as needed, this is as bad as covering only half of the range.
      const merit =
        (overlap_ms / (to_ms - from_ms)) *
        Math.sqrt(Math.min(1, step_ms / pointInterval_ms(span.asked)));
      if (overlap_ms > 0 && merit >= (best?.merit ?? 0)) {
        best = { span, merit };
      }
    }
    return best?.span ?? null;
  }

  private scheduleRequest(): void {
    const { need, answered } = this;
    const isAnswered = answered !== null && need !== null && areSimilarNeeds(answered.need, need);
    if (
      this.timer !== undefined ||
      need === null ||
      (isAnswered && Date.now() < answered.until_ms)
    ) {
      return;
    }
    // The first request is sent immediately; later requests wait until the user stops zooming.
    const isFirst = answered === null && this.asking === null;
    this.timer = setTimeout(() => this.requestIfSettled(need), isFirst ? 0 : SETTLE_MS);
  }

  /** Sends the request if the needed span is still about the same as `before`. */
  private requestIfSettled(before: Need): void {
    this.timer = undefined;
    const { need } = this;
    if (need === null) {
      return;
    }
    if (!areSimilarNeeds(before, need)) {
      this.scheduleRequest();
      return;
    }
    const { asking } = this;
    if (asking === null || !coversNeed(asking.asked, need, MAX_COARSENESS, MIN_TAIL_MS)) {
      asking?.abort.abort();
      void this.requestSpan(need);
    }
  }

  private async requestSpan(need: Need): Promise<void> {
    const { store, request, onChange } = this.options;
    const margin_ms = MARGIN * (need.to_ms - need.from_ms);
    const now_ms = store.clock.now();
    // A tier that reaches further back has a lower resolution, which would then apply to the whole
    // answer. Therefore the margin must not reach beyond the tier of the displayed span.
    const reach_ms = TIER_LENGTHS_MS.find((reach) => need.from_ms >= now_ms - reach) ?? Infinity;
    const from_ms = Math.round(Math.max(need.from_ms - margin_ms, now_ms - reach_ms));
    const to_ms = Math.round(Math.min(now_ms, need.to_ms + margin_ms));
    const points = Math.min(
      MAX_POINTS,
      Math.ceil((need.points * (to_ms - from_ms)) / (need.to_ms - need.from_ms)),
    );
    const asked: RequestedSpan = { from_ms, to_ms, points, metrics: need.metrics };
    const abort = new AbortController();
    const asking = { asked, abort };
    this.asking = asking;
    const query = new URLSearchParams({
      from_ms: String(Math.max(0, from_ms)),
      to_ms: String(to_ms),
      points: String(points),
      metrics: need.metrics.join(),
    });
    const { json, why } = await readJsonResponse(
      request(`api/v1/history?${query}`, { signal: abort.signal }),
    );
    if (this.asking !== asking) {
      return;
    }
    this.asking = null;
    this.answered = { need, why, until_ms: Date.now() + (why === null ? REPEAT_MS : RETRY_MS) };
    if (why === null) {
      const span = new PastSpan(asked, json as HistorySpan, store.gap_ms);
      // An older span is no longer needed if the new one contains all of its data.
      const others = this.kept.filter((old) => !coversNeed(asked, old.asked, 1, 0));
      this.kept = [...others, span].slice(-MAX_SPANS);
    }
    onChange();
  }
}

/** Returns the time between points in milliseconds. */
function pointInterval_ms({
  from_ms,
  to_ms,
  points,
}: Pick<RequestedSpan, 'from_ms' | 'to_ms' | 'points'>): number {
  return (to_ms - from_ms) / points;
}

/** Returns whether two needed spans are about the same. A live span moves slightly with time. */
function areSimilarNeeds(a: Need, b: Need): boolean {
  const length_ms = a.to_ms - a.from_ms;
  const near = (x: number, y: number): boolean => Math.abs(x - y) <= length_ms * 0.01 + SETTLE_MS;
  return (
    near(a.from_ms, b.from_ms) && near(a.to_ms, b.to_ms) && a.metrics.join() === b.metrics.join()
  );
}

/**
 * Returns whether a span contains the needed data. Its points may be `coarseness` times as far
 * apart as needed, and it may end `tail_ms` too early.
 */
function coversNeed(span: RequestedSpan, need: Need, coarseness: number, tail_ms: number): boolean {
  return (
    span.from_ms <= need.from_ms &&
    span.to_ms + tail_ms >= need.to_ms &&
    pointInterval_ms(span) <= coarseness * pointInterval_ms(need) &&
    need.metrics.every((metric) => span.metrics.includes(metric))
  );
}

/** Merges events without duplicates. The events of the last minutes are in both lists. */
function mergeEvents(past: readonly Event[], live: readonly Event[]): Event[] {
  const all = new Map([...past, ...live].map((event) => [JSON.stringify(event), event]));
  return [...all.values()].sort((a, b) => a.at_ms - b.at_ms);
}
