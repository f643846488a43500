/** The head of the view: what this is, whether it is true just now, and all GPUs in one line. */

import { h, keyed, setAttribute, setShown, setText } from '../lib/dom';
import { duration, timeOfDay } from '../lib/format';
import { plainText } from '../lib/text';
import { trans } from '../lib/translation';
import { valueOf } from '../model/reading';
import type { Status } from '../model/status';
import type { Store } from '../model/store';

/** Spans of time to choose from, in minutes; the server remembers as much as the longest. */
const SPANS_MIN = [2, 5] as const;

export interface HeaderOptions {
  title: string;
  /** More buttons of whoever embeds the view. */
  actions: readonly HTMLElement[];
  /** The other span of time is wanted; `null` where that is chosen elsewhere. */
  onSpan: (() => void) | null;
  onRetry: () => void;
}

export class Header {
  readonly element: HTMLElement;
  private readonly title: HTMLElement;
  private readonly simulated = h(
    'span',
    {
      class: 'gpumon-simulated',
      'data-testid': 'gpumon-simulated',
      title: trans.__('These GPUs are simulated by gpumon. No driver is read.'),
    },
    trans.__('simulated'),
  );
  private readonly status = h('span', { class: 'gpumon-status-text' });
  private readonly statusLine = h('span', { class: 'gpumon-status', 'data-testid': 'gpumon-status' });
  private readonly retry = h(
    'button',
    { class: 'gpumon-retry', type: 'button', title: trans.__('Reconnect now') },
    trans.__('now'),
  );
  private readonly summary = h('span', { class: 'gpumon-summary', 'data-testid': 'gpumon-summary' });
  private readonly parts = new Map<string, { element: HTMLElement }>();
  private readonly platform = h('span', { class: 'gpumon-platform gpumon-wide' });
  private readonly span = h('button', { class: 'gpumon-span', type: 'button', 'data-testid': 'gpumon-span' });

  constructor(options: HeaderOptions) {
    this.title = h('h1', { class: 'gpumon-title' }, options.title);
    this.statusLine.append(h('span', { class: 'gpumon-dot', 'aria-hidden': 'true' }), this.status, this.retry);
    this.retry.addEventListener('click', options.onRetry);
    setShown(this.span, options.onSpan !== null);
    this.span.addEventListener('click', () => options.onSpan?.());
    this.element = h(
      'header',
      { class: 'gpumon-head' },
      h('div', { class: 'gpumon-head-row' }, this.title, this.platform, this.simulated, this.statusLine),
      h('div', { class: 'gpumon-head-row gpumon-head-second' }, this.summary, this.span, ...options.actions),
    );
  }

  update(store: Store, status: Status, summary: readonly string[], spanMin: number, at_ms: number | null): void {
    const platform = store.inventory?.platform;
    setShown(this.simulated, platform?.source === 'simulated');
    const past = at_ms === null ? null : trans.__('%1, %2 ago', timeOfDay(at_ms), duration(store.clock.now() - at_ms));
    setText(this.status, past ?? status.text);
    setAttribute(this.statusLine, 'data-level', past === null ? status.level : 'past');
    setAttribute(this.statusLine, 'title', status.title);
    setShown(this.retry, store.phase.phase === 'waiting' && past === null);
    const parts = keyed(
      this.summary,
      this.parts,
      summary,
      (part) => String(summary.indexOf(part)),
      () => ({ element: h('span', {}) }),
    );
    parts.forEach(({ element }, i) => setText(element, summary[i] ?? ''));
    this.updatePlatform(store);
    setText(this.span, duration(spanMin * 60_000));
    setAttribute(
      this.span,
      'title',
      trans._n(
        'Showing the last minute. Click for %2.',
        'Showing the last %1 minutes. Click for %2.',
        spanMin,
        nextSpan(spanMin),
      ),
    );
  }

  private updatePlatform(store: Store): void {
    if (store.inventory === null) {
      return;
    }
    const { hostname, platform } = store.inventory;
    const driver = valueOf(platform.driver_version);
    const cuda = valueOf(platform.cuda_version);
    const platformParts = [
      plainText(hostname),
      driver === null ? null : trans.__('driver %1', plainText(driver)),
      cuda === null ? null : `CUDA ${plainText(cuda)}`,
    ].filter((part) => part !== null);
    setText(this.platform, platformParts.join(' · '));
    const version = store.version === null ? [] : [`gpumon ${plainText(store.version)}`];
    setAttribute(this.title, 'title', [...platformParts, ...version].join('\n'));
  }
}

/** The other span of time, in minutes. */
export function nextSpan(minutes: number): number {
  return SPANS_MIN[(SPANS_MIN.findIndex((span) => span === minutes) + 1) % SPANS_MIN.length] ?? SPANS_MIN[0];
}
