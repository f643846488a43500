/** The head of the view: what this is, whether it is true just now, and all GPUs in one line. */

import { button, h, KeyedRows, setAttribute, setShown, setText } from '../lib/dom';
import { dateAndTime, duration, since } from '../lib/format';
import { own } from '../lib/own';
import { joined, plainText } from '../lib/text';
import { trans } from '../lib/translation';
import { valueOf } from '../model/reading';
import type { Request } from '../model/request';
import { isFresh, type Status } from '../model/status';
import type { Store } from '../model/store';
import type { Driver, Platform } from '../wire';
import { VENDORS } from '../wire/vendors';
import { failedPart, part } from './part';
import type { ReplayBar } from './replay-bar';

/** Spans of time to choose from, in minutes; the server remembers as much as the longest. */
const SPANS_MIN = [2, 5] as const;

export interface HeaderOptions {
  title: string;
  /** More buttons of whoever embeds the view. */
  actions?: readonly HTMLElement[];
  /** The other span of time is wanted; left out where that is chosen elsewhere. */
  onSpan?: () => void;
  onRetry: () => void;
  /** Called when paused charts should resume. */
  onResume?: () => void;
  /** How the server is asked, to steer a recording that it plays. */
  request?: Request | undefined;
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
  private readonly recording = h(
    'span',
    { class: 'gpumon-simulated', 'data-testid': 'gpumon-recording' },
    trans.__('recording'),
  );
  /** The controls of a recording, once there is one. */
  private readonly replay = h('div', {});
  private bar: ReplayBar | null = null;
  private loading = false;
  private readonly status = h('span', { class: 'gpumon-status-text' });
  private readonly statusLine = h('span', {
    class: 'gpumon-status',
    'data-testid': 'gpumon-status',
  });
  private readonly retry: HTMLElement;
  private readonly resume: HTMLElement;
  /** Announces that charts are paused or live again. */
  private readonly spoken = h('span', { class: 'gpumon-visually-hidden', role: 'status' });
  private wasPaused = false;
  private readonly summary = h('span', {
    class: 'gpumon-summary',
    'data-testid': 'gpumon-summary',
  });
  private readonly parts = new KeyedRows(
    this.summary,
    ([place]: [number, string]) => String(place),
    () => ({ element: h('span', {}) }),
  );
  private readonly platform = h('span', { class: 'gpumon-platform gpumon-wide' });
  private readonly span: HTMLElement;

  constructor(private readonly options: HeaderOptions) {
    this.title = h('h1', { class: 'gpumon-title' }, options.title);
    const retryTitle = trans.__('Reconnect now');
    this.retry = button(
      { class: 'gpumon-retry', title: retryTitle },
      options.onRetry,
      trans.__('now'),
    );
    this.resume = button(
      {
        class: 'gpumon-retry',
        'data-testid': 'gpumon-resume',
        title: trans.__('Resume live updates'),
      },
      () => options.onResume?.(),
      trans.__('Resume'),
    );
    const dot = h('span', { class: 'gpumon-dot', 'aria-hidden': 'true' });
    this.statusLine.append(dot, this.status, this.retry, this.resume);
    this.span = button({ class: 'gpumon-chip gpumon-span', 'data-testid': 'gpumon-span' }, () =>
      options.onSpan?.(),
    );
    setShown(this.span, options.onSpan !== undefined);
    this.element = h(
      'div',
      { class: 'gpumon-head' },
      h(
        'div',
        { class: 'gpumon-head-row' },
        this.title,
        this.platform,
        this.simulated,
        this.recording,
        this.statusLine,
        ...(options.onResume === undefined ? [] : [this.spoken]),
      ),
      h(
        'div',
        { class: 'gpumon-head-row gpumon-head-second' },
        this.summary,
        this.span,
        ...(options.actions ?? []),
      ),
      this.replay,
    );
  }

  /** `paused` is the span that paused charts show; `null` while they are live. */
  update(
    store: Store,
    status: Status,
    summary: readonly string[],
    spanMin: number,
    at_ms: number | null,
    paused: readonly [from: string, to: string] | null,
  ): void {
    const platform = store.inventory?.platform;
    setShown(this.simulated, platform?.source === 'simulated');
    const past =
      at_ms === null
        ? null
        : trans.__(
            '%1, %2 ago',
            since(at_ms, store.clock.now()),
            duration(store.clock.now() - at_ms),
          );
    this.updateReplay(store);
    // A lost connection matters more than paused charts.
    const isPaused = paused !== null && isFresh(status);
    const text = isPaused ? trans.__('Paused %1 – %2', ...paused) : status.text;
    setText(this.status, past ?? text);
    setAttribute(
      this.statusLine,
      'data-level',
      past !== null ? 'past' : isPaused ? 'paused' : status.level,
    );
    setAttribute(
      this.statusLine,
      'title',
      isPaused ? trans.__('Samples are still recorded.') : status.title,
    );
    setShown(this.resume, paused !== null);
    this.announcePause(paused);
    setShown(this.retry, store.phase.phase === 'waiting' && past === null);
    this.parts.update([...summary.entries()], ({ element }, [, part]) => setText(element, part));
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

  private announcePause(paused: readonly [from: string, to: string] | null): void {
    if (paused !== null) {
      setText(this.spoken, trans.__('Charts paused: %1 to %2', ...paused));
    } else if (this.wasPaused) {
      setText(this.spoken, trans.__('Charts resumed'));
    }
    this.wasPaused = paused !== null;
  }

  private updateReplay(store: Store): void {
    const playback = store.inventory?.playback;
    setShown(this.recording, playback !== undefined);
    setShown(this.replay, playback !== undefined);
    if (playback === undefined) {
      return;
    }
    const at_ms = store.sample?.at_ms ?? playback.from_ms;
    setText(this.recording, trans.__('recording of %1', dateAndTime(at_ms)));
    setAttribute(
      this.recording,
      'title',
      trans.__(
        'Recorded from %1 to %2',
        dateAndTime(playback.from_ms),
        dateAndTime(playback.to_ms),
      ),
    );
    if (this.bar === null) {
      void this.loadReplay();
    }
    this.bar?.update(playback, at_ms);
  }

  private async loadReplay(): Promise<void> {
    if (this.loading) {
      return;
    }
    this.loading = true;
    try {
      const { ReplayBar } = await part(import('./replay-bar'));
      this.bar = new ReplayBar(this.options.request);
      this.replay.replaceChildren(this.bar.element);
    } catch (error) {
      this.replay.replaceChildren(failedPart(error));
    }
  }

  private updatePlatform(store: Store): void {
    if (store.inventory === null) {
      return;
    }
    const { hostname, platform } = store.inventory;
    const parts = [plainText(hostname), ...describeVersions(platform)];
    setText(this.platform, joined(parts));
    const version = store.version && `gpumon ${plainText(store.version)}`;
    setAttribute(this.title, 'title', joined([...parts, version], '\n'));
  }
}

/** The versions of all drivers. With several drivers, each has its vendor's name. */
function describeVersions(platform: Platform): string[] {
  const { driver_version, cuda_version: cuda } = platform;
  const nvidia = { vendor: 'nvidia', version: driver_version, cuda_version: cuda } as const;
  const drivers: Pick<Driver, keyof typeof nvidia>[] = platform.drivers ?? [nvidia];
  return drivers.flatMap(({ vendor, version, cuda_version }) => {
    const driver = plainText(valueOf(version) ?? '');
    const newestCuda = plainText(valueOf(cuda_version) ?? '');
    const name = own(VENDORS, vendor) ?? vendor;
    return [
      driver && (drivers.length === 1 ? trans.__('driver %1', driver) : `${name} ${driver}`),
      newestCuda && `CUDA ${newestCuda}`,
    ];
  });
}

/** The other span of time, in minutes. */
export function nextSpan(minutes: number): number {
  return minutes === SPANS_MIN[0] ? SPANS_MIN[1] : SPANS_MIN[0];
}
