/** Lays an earlier span of the history beside the one that is shown, and says how they differ. */

import { h, setText } from '../../lib/dom';
import { DASH } from '../../lib/format';
import { remembered } from '../../lib/remembered';
import type { SeriesSource } from '../../lib/timeline';
import { trans } from '../../lib/translation';
import { changeText, FIGURES, figuresOf, later } from '../../model/dashboard/comparison';
import { spanText } from '../../model/dashboard/moment';
import { seriesKey, type GpuState } from '../../model/gpu';
import { Past, type PastOptions } from '../../model/history/past';

export interface Compared {
  /** What is shown. */
  from_ms: number;
  to_ms: number;
  now_ms: number;
  /** How much earlier the other span is. */
  by_ms: number;
  points: number;
  metrics: readonly string[];
  gpus: readonly GpuState[];
}

const METRICS = FIGURES.map(({ metric }) => metric);
/** Figures need no more points than so. */
const POINTS = 600;

export class Comparison {
  readonly element: HTMLElement;
  private readonly shown: Past;
  private readonly earlier: Past;
  private readonly moved = remembered(later);
  private readonly figures = [remembered(figuresOf), remembered(figuresOf)] as const;
  private readonly heads = [h('th', { scope: 'col' }), h('th', { scope: 'col' })] as const;
  private readonly rows = FIGURES.map(({ label }) => ({
    name: h('th', { scope: 'row' }, label()),
    cells: [h('td'), h('td'), h('td')] as const,
  }));
  private readonly note = h('p', { class: 'gpumon-missing', role: 'status' });

  constructor(options: PastOptions) {
    this.shown = new Past(options);
    this.earlier = new Past(options);
    const head = h('tr', {}, h('td'), ...this.heads, h('th', { scope: 'col' }, trans.__('Change')));
    this.element = h(
      'section',
      { class: 'gpumon-comparison', 'aria-label': trans.__('Comparison') },
      h(
        'table',
        {},
        h('thead', {}, head),
        h('tbody', {}, ...this.rows.map(({ name, cells }) => h('tr', {}, name, ...cells))),
      ),
      this.note,
    );
  }

  /** The lines of the earlier span, where those that are shown are; `null` where nothing is known of it yet. */
  update({ from_ms, to_ms, now_ms, by_ms, points, metrics, gpus }: Compared): SeriesSource | null {
    const [earlierFrom_ms, earlierTo_ms] = [from_ms - by_ms, to_ms - by_ms];
    const wanted = [...new Set([...metrics, ...METRICS])].sort();
    const earlier = this.earlier.known({
      from_ms: earlierFrom_ms,
      to_ms: earlierTo_ms,
      points,
      metrics: wanted,
    });
    const shown = this.shown.known({ from_ms, to_ms, points: POINTS, metrics: METRICS });
    [spanText(from_ms, to_ms, now_ms), spanText(earlierFrom_ms, earlierTo_ms, now_ms)].forEach(
      (span, i) => {
        const head = this.heads[i];
        if (head !== undefined) {
          setText(head, trans.__('%1 to %2', ...span));
        }
      },
    );
    // Figures of a span that moves on are made anew with each point.
    const step_ms = Math.ceil((to_ms - from_ms) / POINTS);
    const begin_ms = Math.floor(from_ms / step_ms) * step_ms;
    const keys = gpus.map(({ index, uuid }) => seriesKey({ index, uuid }, '')).join();
    const [ofShown, ofEarlier] = this.figures;
    const own =
      shown === null ? [] : ofShown(shown.source, begin_ms, begin_ms + to_ms - from_ms, keys);
    const theirs =
      earlier === null
        ? []
        : ofEarlier(earlier.source, begin_ms - by_ms, begin_ms + to_ms - from_ms - by_ms, keys);
    this.rows.forEach(({ cells }, i) => {
      const figure = FIGURES[i];
      const [a, b] = [own[i] ?? null, theirs[i] ?? null];
      if (figure !== undefined) {
        const texts = [
          ...[a, b].map((value) => (value === null ? DASH : figure.unit.text(value))),
          changeText(figure, a, b),
        ];
        cells.forEach((cell, place) => setText(cell, texts[place] ?? ''));
      }
    });
    setText(this.note, this.problem(earlier?.answer.oldest_ms ?? null, earlierTo_ms));
    return earlier === null ? null : this.moved(earlier.source, by_ms);
  }

  dispose(): void {
    this.shown.dispose();
    this.earlier.dispose();
  }

  private problem(oldest_ms: number | null, earlierTo_ms: number): string {
    const problem = this.earlier.problem ?? this.shown.problem;
    if (problem !== null) {
      return trans.__('The history cannot be read. %1', problem);
    }
    return oldest_ms !== null && oldest_ms >= earlierTo_ms
      ? trans.__('Nothing is recorded of the earlier span.')
      : '';
  }
}
