/** Recent events, the newest first. Those of processes are too frequent to be shown unless asked for. */

import { button, h, KeyedRows, setAttribute, setShown, setText } from '../lib/dom';
import { since } from '../lib/format';
import { trans } from '../lib/translation';
import { eventRows, processEvents, type EventRow } from '../model/event';
import type { GpuState } from '../model/gpu';
import type { Event, Sample } from '../wire';
import { severityIcon, severityLabel } from './severity-icon';

/** So many lines leave room for the rest; the others come on demand. */
const SHORT = 5;

export class EventList {
  readonly element: HTMLElement;
  private readonly list = h('ol', { class: 'gpumon-events', 'data-testid': 'gpumon-events' });
  private readonly rows = new KeyedRows(
    this.list,
    ({ key }: EventRow) => key,
    () => new Row(),
  );
  private readonly empty = h('p', { class: 'gpumon-empty' }, trans.__('No events.'));
  private readonly processes: HTMLElement;
  private readonly more: HTMLElement;
  private withProcesses = false;
  private whole = false;

  constructor(invalidate: () => void) {
    this.processes = button({ class: 'gpumon-chip' }, () => {
      this.withProcesses = !this.withProcesses;
      invalidate();
    });
    this.more = button({ class: 'gpumon-chip' }, () => {
      this.whole = !this.whole;
      invalidate();
    });
    const heading = h('h2', {}, trans.__('Events'));
    this.element = h(
      'section',
      { class: 'gpumon-section', 'aria-label': trans.__('Events') },
      h('div', { class: 'gpumon-section-head' }, heading, this.processes),
      this.list,
      this.empty,
      this.more,
    );
  }

  update(
    events: readonly Event[],
    sample: Sample | null,
    gpus: readonly GpuState[],
    now_ms: number,
  ): void {
    const rows = eventRows(events, this.withProcesses, sample, gpus);
    setShown(this.empty, rows.length === 0);
    setShown(this.list, rows.length > 0);
    this.rows.update(this.whole ? rows : rows.slice(0, SHORT), (line, row) =>
      line.update(row, now_ms),
    );
    const hidden = processEvents(events);
    setShown(this.processes, hidden > 0);
    setText(this.processes, trans.__('Processes (%1)', hidden));
    setAttribute(this.processes, 'aria-pressed', String(this.withProcesses));
    setAttribute(this.processes, 'title', trans.__('Show when processes start and exit'));
    setShown(this.more, rows.length > SHORT);
    setText(this.more, this.whole ? trans.__('Show fewer') : trans.__('Show all %1', rows.length));
    setAttribute(this.more, 'aria-expanded', String(this.whole));
  }
}

class Row {
  readonly element: HTMLElement;
  private readonly time = h('time', { class: 'gpumon-event-time' });
  private readonly gpu = h('span', { class: 'gpumon-event-gpu' });
  private readonly level = h('span', { class: 'gpumon-visually-hidden' });
  private readonly text = h('span', {});
  private readonly more = h('span', { class: 'gpumon-event-more' });

  constructor() {
    this.element = h(
      'li',
      { class: 'gpumon-event' },
      severityIcon(),
      this.time,
      this.gpu,
      h('span', { class: 'gpumon-event-text' }, this.level, this.text, this.more),
    );
  }

  update(row: EventRow, now_ms: number): void {
    setAttribute(this.element, 'data-level', row.resolved ? 'done' : row.level);
    setText(this.time, since(row.at_ms, now_ms));
    setAttribute(this.time, 'datetime', new Date(row.at_ms).toISOString());
    setText(this.gpu, row.gpu === null ? trans.__('all') : trans.__('GPU %1', row.gpu));
    setText(this.level, severityLabel(row.level));
    setText(this.text, row.text);
    setText(this.more, row.more === '' ? '' : ` ${row.more}`);
  }
}
