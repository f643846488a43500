/** The history before the stream, and the comparison with an earlier span. */

import type { ComponentChild } from 'preact';

import { DASH, formatDuration, formatTimeWithDateUnlessToday } from '../../lib/format';
import { memoizeLast } from '../../lib/memoize';
import { joinParts, plainText } from '../../lib/text';
import type { SeriesSource } from '../../lib/timeline';
import { trans } from '../../lib/translation';
import { changeText, FIGURES, computeFigures, shiftSeries } from '../../model/dashboard/comparison';
import { formatSpan } from '../../model/dashboard/readout';
import { displayedRange, STREAMED_MS, type DashboardState } from '../../model/dashboard/state';
import { seriesKey, type GpuState } from '../../model/gpu';
import { HistoryCache, type AvailableHistory, type PastOptions } from '../../model/history';
import type { HistorySpan } from '../../wire';

/** If at most this share of the displayed span is not recorded, no note is shown. */
const MAX_UNREPORTED_SHARE = 0.02;
const KEEP_COMMAND = 'gpumon serve --data-dir DIR';
const METRICS = FIGURES.map(({ metric }) => metric);
/** The assumed width of charts that have not been drawn yet, in device pixels. */
const DEFAULT_WIDTH = 800;
/** The distance between points on a line, in device pixels. */
const POINT_PX = 2;
/** The number of points that are requested for the figures of a span. */
const POINTS = 600;

/** The data that the charts need, and the charts' width in device pixels. */
export interface PastNeed {
  state: DashboardState;
  now_ms: number;
  metrics: readonly string[];
  gpus: readonly GpuState[];
  width: number;
}

export class PastPart {
  /** The first recorded time; `null` until the server has answered. */
  oldest_ms: number | null = null;
  private readonly past: HistoryCache;
  private readonly shown: HistoryCache;
  private readonly earlier: HistoryCache;
  private readonly moved = memoizeLast(shiftSeries);
  private readonly figures = [memoizeLast(computeFigures), memoizeLast(computeFigures)] as const;

  constructor(
    options: PastOptions,
    /** Called with the first recorded time to show everything since then. */
    private readonly onAll: (oldest_ms: number) => void,
  ) {
    this.past = new HistoryCache(options);
    this.shown = new HistoryCache(options);
    this.earlier = new HistoryCache(options);
  }

  get isLoading(): boolean {
    return this.past.isLoading;
  }

  /**
   * Returns the history of the displayed span, and a note if the history does not cover the span.
   */
  findOrRequestHistory(need: PastNeed): { known: AvailableHistory | null; note: ComponentChild } {
    const { now_ms, metrics } = need;
    const [from_ms, to_ms] = displayedRange(need.state, now_ms);
    const known = this.past.findOrRequestHistory({
      from_ms,
      to_ms,
      points: countFittingPoints(need),
      metrics,
    });
    this.oldest_ms = known?.answer.oldest_ms ?? this.oldest_ms;
    const { failureReason } = this.past;
    // No note is shown for a gap in the streamed samples. Otherwise, even a short pause would show
    // a note, which moves the charts.
    const note = (from_ms < now_ms - STREAMED_MS || failureReason !== null) && (
      <PastNote
        missing={
          (known?.answer.oldest_ms ?? from_ms) - from_ms > MAX_UNREPORTED_SHARE * (to_ms - from_ms)
        }
        now_ms={now_ms}
        answer={known?.answer ?? null}
        problem={failureReason}
        onAll={this.onAll}
      />
    );
    return { known, note };
  }

  /**
   * Returns the lines of the earlier span, moved to the displayed one, and the figures of both
   * spans.
   */
  compare(need: PastNeed, by_ms: number): { source: SeriesSource | null; figures: ComponentChild } {
    const { now_ms, metrics, gpus } = need;
    const [from_ms, to_ms] = displayedRange(need.state, now_ms);
    const [earlierFrom_ms, earlierTo_ms] = [from_ms - by_ms, to_ms - by_ms];
    const wanted = [...new Set([...metrics, ...METRICS])].sort();
    const earlier = this.earlier.findOrRequestHistory({
      from_ms: earlierFrom_ms,
      to_ms: earlierTo_ms,
      points: countFittingPoints(need),
      metrics: wanted,
    });
    const shown = this.shown.findOrRequestHistory({
      from_ms,
      to_ms,
      points: POINTS,
      metrics: METRICS,
    });
    this.oldest_ms = (earlier ?? shown)?.answer.oldest_ms ?? this.oldest_ms;
    // The start of the span is rounded down to a multiple of the distance between points. While a
    // live span moves, its figures are therefore computed only once for each new point.
    const step_ms = Math.ceil((to_ms - from_ms) / POINTS);
    const begin_ms = Math.floor(from_ms / step_ms) * step_ms;
    const end_ms = begin_ms + to_ms - from_ms;
    const keys = gpus.map(({ index, uuid }) => seriesKey({ index, uuid }, '')).join();
    const [ofShown, ofEarlier] = this.figures;
    const own = shown && ofShown(shown.source, begin_ms, end_ms, keys);
    const others = earlier && ofEarlier(earlier.source, begin_ms - by_ms, end_ms - by_ms, keys);
    const problem = this.earlier.failureReason ?? this.shown.failureReason;
    const isEmpty = (earlier?.answer.oldest_ms ?? -Infinity) >= earlierTo_ms;
    return {
      source: earlier && this.moved(earlier.source, by_ms),
      figures: (
        <section class="gpumon-comparison" aria-label={trans.__('Comparison')}>
          <table>
            <thead>
              <tr>
                <td />
                {[
                  formatSpan(from_ms, to_ms, now_ms),
                  formatSpan(earlierFrom_ms, earlierTo_ms, now_ms),
                ].map((span) => (
                  <th key={span.join()} scope="col">
                    {trans.__('%1 to %2', ...span)}
                  </th>
                ))}
                <th scope="col">{trans.__('Change')}</th>
              </tr>
            </thead>
            <tbody>
              {FIGURES.map((figure, i) => {
                const [a, b] = [own?.[i] ?? null, others?.[i] ?? null];
                const text = (value: number | null): string =>
                  value === null ? DASH : figure.unit.text(value);
                return (
                  <tr key={figure.id}>
                    <th scope="row">{figure.label()}</th>
                    <td>{text(a)}</td>
                    <td>{text(b)}</td>
                    <td>{changeText(figure, a, b)}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
          <p class="gpumon-missing" role="status">
            {problem !== null
              ? trans.__('The history cannot be read. %1', problem)
              : isEmpty && trans.__('No data was recorded in the earlier time range.')}
          </p>
        </section>
      ),
    };
  }

  dispose(): void {
    [this.past, this.shown, this.earlier].forEach((past) => past.dispose());
  }
}

/** Returns the number of points that fit into the width of a chart. */
function countFittingPoints({ width }: PastNeed): number {
  return Math.ceil((width || DEFAULT_WIDTH) / POINT_PX);
}

/**
 * If the charts show more than the recorded history, shows how far back the history goes and how to
 * keep more of it.
 */
function PastNote({
  missing,
  now_ms,
  answer,
  problem,
  onAll,
}: {
  /** Whether a part of the displayed span is not recorded. */
  missing: boolean;
  now_ms: number;
  answer: HistorySpan | null;
  problem: string | null;
  onAll: (oldest_ms: number) => void;
}) {
  const isShort = answer !== null && missing;
  const storage = answer?.storage;
  const isInMemory = isShort && storage?.on_disk === false && storage.problem === undefined;
  const text = joinParts(
    [
      problem === null ? null : trans.__('The history cannot be read. %1', problem),
      isShort ? describeHistoryRetention(answer, now_ms) : null,
      storage?.problem === undefined ? null : plainText(storage.problem),
      isInMemory ? trans.__('To keep up to a year on disk, start the server with:') : null,
    ],
    ' ',
  );
  const isProblem = problem !== null || storage?.problem !== undefined;
  return text === '' ? null : (
    <div class="gpumon-past-note" data-level={isProblem ? 'warning' : undefined}>
      <span>{text}</span>
      {isInMemory && <code>{KEEP_COMMAND}</code>}
      {isShort && answer.oldest_ms < answer.to_ms && (
        <button type="button" class="gpumon-chip" onClick={() => onAll(answer.oldest_ms)}>
          {trans.__('Show the whole history')}
        </button>
      )}
    </div>
  );
}

function describeHistoryRetention(
  { oldest_ms, to_ms, storage }: HistorySpan,
  now_ms: number,
): string {
  if (oldest_ms >= to_ms) {
    return trans.__('Nothing is recorded yet.');
  }
  const kept = formatDuration(storage.reach_ms);
  const where = storage.on_disk
    ? trans.__('It is kept on disk for %1.', kept)
    : trans.__('It is kept in memory for %1.', kept);
  return `${trans.__('The history starts at %1.', formatTimeWithDateUnlessToday(oldest_ms, now_ms))} ${where}`;
}
