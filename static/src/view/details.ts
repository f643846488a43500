/** The further readings of a GPU under its charts: those looked at most, and all of them in groups on demand. */

import { h, keyed, setAttribute, setShown, setText } from '../lib/dom';
import { trans } from '../lib/translation';
import type { GpuView } from '../model/gpu';
import { detailGroups, type DetailRow } from '../model/details/groups';
import { valueOf } from '../model/reading';
import { MigList } from './mig-list';
import { severityIcon } from './severity-icon';
import { ReadingValue, type Freshness } from './value';

export class Details {
  readonly element = h('div', { class: 'gpumon-gpu-details' });
  private readonly mig = new MigList();
  private readonly keys = new Rows('gpumon-details gpumon-keys');
  private readonly grid = h('div', { class: 'gpumon-groups' });
  private readonly groups = new Map<string, Group>();
  private readonly missing = h('p', { class: 'gpumon-missing', 'data-testid': 'gpumon-missing' });

  private readonly more = h('button', { class: 'gpumon-chip gpumon-more', type: 'button' });
  private whole = false;

  constructor(invalidate: () => void) {
    this.more.addEventListener('click', () => {
      this.whole = !this.whole;
      invalidate();
    });
    this.element.append(this.mig.element, this.keys.element, this.grid, this.missing, this.more);
  }

  update(gpu: GpuView, freshness: Freshness): void {
    this.mig.update(gpu, freshness);
    const details = detailGroups(gpu);
    setShown(this.keys.element, !this.whole);
    this.keys.update(this.whole ? [] : details.keys, gpu, freshness);
    const shown = this.whole ? details.groups : [];
    setShown(this.grid, this.whole);
    const groups = keyed(
      this.grid,
      this.groups,
      shown,
      ({ title }) => title,
      ({ title }) => new Group(title),
    );
    shown.forEach(({ rows }, i) => groups[i]?.rows.update(rows, gpu, freshness));
    this.updateMissing(gpu, details.missing);
    setText(this.more, this.whole ? trans.__('Fewer details') : trans.__('All details'));
    setAttribute(this.more, 'aria-expanded', String(this.whole));
  }

  private updateMissing(gpu: GpuView, missing: readonly string[]): void {
    const waits = gpu.details === null && gpu.now?.health.state === 'ok';
    const notes = [
      missing.length === 0 ? '' : trans.__('Not on this board or driver: %1.', missing.join(', ')),
      waits ? trans.__('Errors, links and settings are refreshed every 10 seconds.') : '',
    ].filter((part) => part !== '');
    setShown(this.missing, this.whole && notes.length > 0);
    setText(this.missing, notes.join(' '));
  }
}

class Group {
  readonly element: HTMLElement;
  readonly rows = new Rows('gpumon-details');

  constructor(title: string) {
    const heading = h('h3', { class: 'gpumon-group' }, title);
    this.element = h('section', { 'aria-label': title }, heading, this.rows.element);
  }
}

class Rows {
  readonly element: HTMLElement;
  private readonly rows = new Map<string, Row>();

  constructor(className: string) {
    this.element = h('dl', { class: className });
  }

  update(rows: readonly DetailRow[], gpu: GpuView, freshness: Freshness): void {
    const shown = keyed(
      this.element,
      this.rows,
      rows,
      ({ detail }) => detail.id,
      ({ detail }) => new Row(detail.id, detail.label),
    );
    rows.forEach((row, i) => shown[i]?.update(row, gpu, freshness));
  }
}

class Row {
  readonly element: HTMLElement;
  private readonly value: ReadingValue;
  private readonly icon = severityIcon();

  constructor(id: string, label: string) {
    this.value = new ReadingValue(id);
    this.element = h('div', {}, h('dt', {}, label), h('dd', {}, this.icon, this.value.element));
  }

  update({ detail, reading }: DetailRow, gpu: GpuView, freshness: Freshness): void {
    const level = detail.level?.(gpu) ?? 'none';
    setAttribute(this.element, 'data-level', level);
    setShown(this.icon, level !== 'none');
    const rest = valueOf(reading) === null ? '' : (detail.rest?.(gpu) ?? '');
    this.value.update(reading, (text) => text, freshness, rest);
  }
}
