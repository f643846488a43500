/** The further readings of a GPU under its charts: those looked at most, and all of them in groups on demand. */

import { button, h, KeyedRows, setAttribute, setShown, setText } from '../lib/dom';
import { adoptStyle } from '../lib/style';
import { joined } from '../lib/text';
import { trans } from '../lib/translation';
import type { GpuState } from '../model/gpu';
import { detailGroups, type DetailRow, type RowGroup } from '../model/details/groups';
import { valueOf } from '../model/reading';
import { MigList } from './mig-list';
import { severityIcon } from './severity-icon';
import style from './style/details.css?inline';
import { ReadingValue, type Freshness } from './value';

export class Details {
  readonly element = h('div', { class: 'gpumon-gpu-details' });
  private readonly mig = new MigList();
  private readonly keys = new DetailList('gpumon-details gpumon-keys');
  private readonly grid = h('div', { class: 'gpumon-groups' });
  private readonly groups = new KeyedRows(
    this.grid,
    ({ title }: RowGroup) => title,
    ({ title }) => new Group(title),
  );
  private readonly missing = h('p', { class: 'gpumon-missing', 'data-testid': 'gpumon-missing' });
  private readonly more: HTMLElement;
  private whole = false;

  constructor(invalidate: () => void) {
    adoptStyle(style);
    this.more = button({ class: 'gpumon-chip gpumon-more' }, () => {
      this.whole = !this.whole;
      invalidate();
    });
    this.element.append(this.mig.element, this.keys.element, this.grid, this.missing, this.more);
  }

  update(gpu: GpuState, freshness: Freshness): void {
    this.mig.update(gpu, freshness);
    const details = detailGroups(gpu);
    setShown(this.keys.element, !this.whole);
    this.keys.update(this.whole ? [] : details.keys, gpu, freshness);
    setShown(this.grid, this.whole);
    this.groups.update(this.whole ? details.groups : [], (group, { rows }) =>
      group.rows.update(rows, gpu, freshness),
    );
    this.updateMissing(gpu, details.missing);
    setText(this.more, this.whole ? trans.__('Fewer details') : trans.__('All details'));
    setAttribute(this.more, 'aria-expanded', String(this.whole));
  }

  private updateMissing(gpu: GpuState, missing: readonly string[]): void {
    const waits = gpu.details === null && gpu.now?.health.state === 'ok';
    const notes = [
      missing.length === 0 ? '' : trans.__('Not on this board or driver: %1.', missing.join(', ')),
      waits ? trans.__('Errors, links and settings are refreshed every 10 seconds.') : '',
    ];
    const note = joined(notes, ' ');
    setShown(this.missing, this.whole && note !== '');
    setText(this.missing, note);
  }
}

class Group {
  readonly rows = new DetailList('gpumon-details');
  readonly element: HTMLElement;

  constructor(title: string) {
    const heading = h('h3', { class: 'gpumon-group' }, title);
    this.element = h('section', { 'aria-label': title }, heading, this.rows.element);
  }
}

class DetailList {
  readonly element: HTMLElement;
  private readonly rows: KeyedRows<DetailRow, Row>;

  constructor(className: string) {
    this.element = h('dl', { class: className });
    this.rows = new KeyedRows(
      this.element,
      ({ detail }) => detail.id,
      ({ detail }) => new Row(detail.id),
    );
  }

  update(rows: readonly DetailRow[], gpu: GpuState, freshness: Freshness): void {
    this.rows.update(rows, (row, shown) => row.update(shown, gpu, freshness));
  }
}

class Row {
  readonly element: HTMLElement;
  private readonly value: ReadingValue;
  private readonly label = h('dt');
  private readonly icon = severityIcon();

  constructor(id: string) {
    this.value = new ReadingValue(id);
    this.element = h('div', {}, this.label, h('dd', {}, this.icon, this.value.element));
  }

  update({ detail, label, reading }: DetailRow, gpu: GpuState, freshness: Freshness): void {
    setText(this.label, label);
    const level = detail.level?.(gpu) ?? 'none';
    setAttribute(this.element, 'data-level', level);
    setShown(this.icon, level !== 'none');
    const rest = valueOf(reading) === null ? '' : (detail.rest?.(gpu) ?? '');
    this.value.update(reading, (text) => text, freshness, rest);
  }
}
