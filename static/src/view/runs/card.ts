/** One run: how far it is, what its GPU does meanwhile, and what came of it. */

import { button, h, setAttribute, setShown, setText } from '../../lib/dom';
import { duration, since } from '../../lib/format';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { GpuState } from '../../model/gpu';
import { limitOf, METRICS } from '../../model/metric';
import { describeStep, RUN_LEVEL, RUN_STATUS, shareOf, titleOf } from '../../model/describe-run';
import { formatted } from '../../model/unit';
import type { RunDetails, RunItem, RunState } from '../../wire';
import { severityIcon } from '../severity-icon';
import { ReadingValue, type Freshness } from '../value';
import { itemElement } from './item';

/** What somebody wants to see of a GPU that works. */
const LIVE = METRICS.filter(({ id }) =>
  ['utilization.gpu_percent', 'memory.used_bytes', 'power.draw_watts'].includes(id),
);

export class RunCard {
  readonly element = h('details', { class: 'gpumon-run' });
  private readonly summary = h('summary');
  private readonly title = h('span', { class: 'gpumon-run-title' });
  private readonly status = h('span', { class: 'gpumon-run-status' });
  private readonly now = h('div', { class: 'gpumon-run-now' });
  private readonly step = h('span', { class: 'gpumon-run-step' });
  private readonly bar = h('progress', { max: '1' });
  private readonly text = h('span', { class: 'gpumon-run-text' });
  private readonly live = h('dl', { class: 'gpumon-run-live' });
  private readonly values = LIVE.map((metric) => ({ metric, value: new ReadingValue(metric.id) }));
  private readonly cancel: HTMLElement;
  private readonly foreign = h('span', { class: 'gpumon-empty' }, trans.__('Press Ctrl-C in its terminal to stop it.'));
  private readonly error = h('p', { class: 'gpumon-run-error' });
  private readonly list = h('ol', { class: 'gpumon-run-items' });
  private items: RunItem[] = [];
  private requested = 0;
  private chosen = false;

  constructor(
    private readonly fetchAll: () => Promise<RunDetails | null>,
    cancel: () => void,
    private readonly invalidate: () => void,
  ) {
    this.live.append(
      ...this.values.map(({ metric, value }) => h('div', {}, h('dt', {}, metric.label()), h('dd', {}, value.element))),
    );
    this.cancel = button({ class: 'gpumon-chip' }, cancel, trans.__('Cancel'));
    this.summary.append(severityIcon(), this.title, this.status);
    this.now.append(this.step, this.bar, this.text, this.cancel, this.foreign, this.live);
    this.element.append(this.summary, this.now, this.error, this.list);
    this.summary.addEventListener('click', () => {
      this.chosen = true;
    });
    this.element.addEventListener('toggle', this.invalidate);
  }

  update(state: RunState, gpus: readonly GpuState[], freshness: Freshness, isNewest: boolean): void {
    const running = state.status === 'running';
    if (!this.chosen) {
      this.element.open = running || isNewest;
    }
    setAttribute(this.element, 'data-run', state.run);
    setAttribute(this.element, 'data-status', state.status);
    setAttribute(this.summary, 'data-level', RUN_LEVEL[state.status]);
    setText(this.title, titleOf(state));
    const lasted = duration((state.ended_ms ?? freshness.now_ms) - state.started_ms);
    const began = since(state.started_ms, freshness.now_ms);
    setText(this.status, trans.__('%1 · %2 · %3', RUN_STATUS()[state.status], began, lasted));
    setShown(this.now, running);
    if (running) {
      this.updateNow(state, gpus, freshness);
    }
    setShown(this.error, state.error !== null);
    setText(this.error, plainText(state.error ?? '', 2000));
    if (this.element.open) {
      this.updateItems(state);
    }
  }

  private updateNow(state: RunState, gpus: readonly GpuState[], freshness: Freshness): void {
    setText(this.step, describeStep(state));
    setText(this.text, plainText(state.text));
    const share = shareOf(state);
    setAttribute(this.bar, 'value', share === null ? null : share.toFixed(3));
    setAttribute(this.bar, 'aria-label', trans.__('Progress'));
    setShown(this.cancel, state.own);
    setShown(this.foreign, !state.own);
    const gpu = gpus.find(({ index }) => state.devices.some((device) => device.index === index));
    setShown(this.live, gpu !== undefined);
    for (const { metric, value } of this.values) {
      const now = gpu?.now ?? null;
      const limit = limitOf(metric, now);
      const { rest } = formatted(metric.unit, null, limit);
      value.update(now && metric.read(now), (one: number) => formatted(metric.unit, one, limit).main, freshness, rest);
    }
  }

  /** Shows what has come; where more came than was told, it is asked for. */
  private updateItems({ items, newest }: RunState): void {
    if (items === this.items.length + 1 && newest !== null) {
      this.add([newest]);
    } else if (items > this.items.length && items > this.requested) {
      this.requested = items;
      void this.fetchAll().then((details) => {
        this.add(details?.all.slice(this.items.length) ?? []);
        this.requested = this.items.length;
      });
    }
  }

  private add(items: readonly RunItem[]): void {
    this.items.push(...items);
    this.list.append(...items.map(itemElement));
  }
}
