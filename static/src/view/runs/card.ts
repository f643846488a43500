/** One run: how far it is, what its GPU does meanwhile, and what came of it. */

import { button, h, setAttribute, setShown, setText } from '../../lib/dom';
import { duration, since, timeOfDay } from '../../lib/format';
import { joined, plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { GpuState } from '../../model/gpu';
import { gpuTitle } from '../../model/gpu-title';
import { limitOf, METRICS } from '../../model/metric';
import {
  describeStep,
  describeTimeLeft,
  placeOf,
  RUN_LEVEL,
  RUN_STATUS,
  shareOf,
  timeLeft,
  titleOf,
} from '../../model/describe-run';
import type { RunHistory } from '../../model/run-history';
import { formatted } from '../../model/unit';
import type { RunState } from '../../wire';
import { severityIcon } from '../severity-icon';
import { ReadingValue, type Freshness } from '../value';
import { itemElement } from './item';
import { resultTable } from './result-table';

/** What somebody wants to see of a GPU that works. */
const LIVE = METRICS.filter(({ id }) =>
  ['utilization.gpu_percent', 'memory.used_bytes', 'power.draw_watts'].includes(id),
);

export class RunCard {
  readonly element = h('div', { class: 'gpumon-run' });
  private readonly choice = h('input', { type: 'checkbox' });
  private readonly details = h('details');
  private readonly summary = h('summary');
  private readonly title = h('span', { class: 'gpumon-run-title' });
  private readonly status = h('span', { class: 'gpumon-run-status' });
  private readonly now = h('div', { class: 'gpumon-run-now' });
  private readonly step = h('span', { class: 'gpumon-run-step' });
  private readonly bar = h('progress', { max: '1' });
  private readonly left = h('span', { class: 'gpumon-run-left' });
  private readonly text = h('span', { class: 'gpumon-run-text' });
  private readonly live = h('dl', { class: 'gpumon-run-live' });
  private readonly values = LIVE.map((metric) => ({
    metric,
    label: h('dt'),
    value: new ReadingValue(metric.id),
  }));
  private readonly cancel: HTMLElement;
  private readonly foreign = h(
    'span',
    { class: 'gpumon-empty' },
    trans.__('Press Ctrl-C in its terminal to stop it.'),
  );
  private readonly error = h('p', { class: 'gpumon-run-error' });
  private readonly results = h('div', { class: 'gpumon-run-results' });
  private readonly list = h('ol', { class: 'gpumon-run-items' });
  private shown = 0;
  private toggled = false;

  constructor(
    private readonly history: RunHistory,
    cancel: () => void,
    private readonly invalidate: () => void,
  ) {
    this.live.append(
      ...this.values.map(({ label, value }) => h('div', {}, label, h('dd', {}, value.element))),
    );
    this.cancel = button({ class: 'gpumon-chip' }, cancel, trans.__('Cancel'));
    this.summary.append(severityIcon(), this.title, this.status);
    const line = h('div', { class: 'gpumon-run-line' }, this.step, this.text);
    this.now.append(line, this.bar, this.left, this.cancel, this.foreign, this.live);
    this.details.append(this.summary, this.now, this.error, this.results, this.list);
    this.element.append(this.choice, this.details);
    this.choice.addEventListener('change', this.invalidate);
    this.summary.addEventListener('click', () => {
      this.toggled = true;
    });
    this.details.addEventListener('toggle', this.invalidate);
  }

  update(
    state: RunState,
    gpus: readonly GpuState[],
    freshness: Freshness,
    isNewest: boolean,
  ): void {
    const running = state.status === 'running';
    if (!this.toggled) {
      this.details.open = running || isNewest;
    }
    setAttribute(this.element, 'data-run', state.run);
    setAttribute(this.element, 'data-status', state.status);
    setAttribute(this.summary, 'data-level', RUN_LEVEL[state.status]);
    setText(this.title, titleOf(state));
    setAttribute(
      this.choice,
      'aria-label',
      trans.__('Choose %1, %2', titleOf(state), timeOfDay(state.started_ms)),
    );
    const lasted = duration((state.ended_ms ?? freshness.now_ms) - state.started_ms);
    const began = since(state.started_ms, freshness.now_ms);
    setText(this.status, joined([placeOf(state), RUN_STATUS()[state.status], began, lasted]));
    setShown(this.now, running);
    if (running) {
      this.updateNow(state, gpus, freshness);
    }
    setShown(this.error, state.error !== null);
    setText(this.error, plainText(state.error ?? '', 2000));
    if (this.details.open && this.shown !== this.history.version) {
      this.shown = this.history.version;
      this.showItems(state);
    }
  }

  /** Whether it is chosen to be compared or exported. */
  get chosen(): boolean {
    return this.choice.checked;
  }

  private updateNow(state: RunState, gpus: readonly GpuState[], freshness: Freshness): void {
    setText(this.step, describeStep(state));
    setText(this.text, plainText(state.text));
    const share = shareOf(state);
    setAttribute(this.bar, 'value', share === null ? null : share.toFixed(3));
    setAttribute(this.bar, 'aria-label', trans.__('Progress'));
    const left_ms = timeLeft(state, freshness.now_ms);
    setText(this.left, left_ms === null ? '' : describeTimeLeft(left_ms));
    setShown(this.cancel, state.own);
    setShown(this.foreign, !state.own);
    const gpu = gpus.find(({ index }) => state.devices.some((device) => device.index === index));
    setShown(this.live, gpu !== undefined);
    for (const { metric, label, value } of this.values) {
      setText(label, gpuTitle(metric.id, metric.label(), gpu === undefined ? [] : [gpu]));
      const now = gpu?.now ?? null;
      const limit = limitOf(metric, now);
      const { rest } = formatted(metric.unit, null, limit);
      value.update(
        now && metric.read(now),
        (one: number) => formatted(metric.unit, one, limit).main,
        freshness,
        rest,
      );
    }
  }

  private showItems(state: RunState): void {
    const { history } = this;
    const rows = history
      .resultsOf(state.run)
      .map((result) => ({ result, last: history.before(state, result) }));
    this.results.replaceChildren(...(rows.length === 0 ? [] : [resultTable(rows)]));
    const others = history.itemsOf(state.run).filter((item) => item.item !== 'result');
    this.list.replaceChildren(...others.map(itemElement));
  }
}
