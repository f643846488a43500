/** Which charts there are: those that are shown, to be taken away, and all others, to be added. */

import { button, h, KeyedRows, setAttribute, setShown, setText } from '../../lib/dom';
import { trans } from '../../lib/translation';
import { chartGroups } from '../../model/dashboard/kinds';
import type { GpuState } from '../../model/gpu';
import { gpuTitle } from '../../model/gpu-title';
import { menu } from '../menu';

export interface ChartListListener {
  onAdd: (chart: string) => void;
  onRemove: (chart: string) => void;
  /** The usual charts are wanted again. */
  onReset: () => void;
  invalidate: () => void;
}

interface Row {
  element: HTMLElement;
  title: HTMLElement;
  remove: HTMLElement;
}

export class ChartList {
  readonly element: HTMLDetailsElement;
  private readonly titles: ReadonlyMap<string, string>;
  private readonly list = h('ul', { class: 'gpumon-chart-list' });
  private readonly rows: KeyedRows<string, Row>;
  private readonly select: HTMLSelectElement;
  private readonly reset: HTMLButtonElement;

  constructor({ onAdd, onRemove, onReset, invalidate }: ChartListListener) {
    const groups = chartGroups();
    this.titles = new Map(
      groups.flatMap(({ charts }) => charts.map(({ id, title }) => [id, title()] as const)),
    );
    this.rows = new KeyedRows<string, Row>(
      this.list,
      (id) => id,
      (id) => {
        const title = h('span');
        const remove = button({}, () => onRemove(id), '×');
        return { element: h('li', {}, title, remove), title, remove };
      },
    );
    const label = trans.__('Add a chart');
    this.select = h('select', { 'aria-label': label }, h('option', { value: '' }, label));
    for (const { title, charts } of groups) {
      const options = charts.map((chart) => h('option', { value: chart.id }, chart.title()));
      this.select.append(h('optgroup', { label: title }, ...options));
    }
    this.select.addEventListener('change', () => {
      if (this.select.value !== '') {
        onAdd(this.select.value);
        this.select.value = '';
      }
    });
    this.reset = button({ class: 'gpumon-chip' }, onReset, trans.__('Default charts'));
    this.element = menu(trans.__('Charts'), h('div', {}, this.list, this.select, this.reset));
    this.element.addEventListener('toggle', invalidate);
  }

  /** `isDefault` says that nobody has chosen any. */
  update(charts: readonly string[], isDefault: boolean, gpus: readonly GpuState[]): void {
    if (!this.element.open) {
      return;
    }
    const titleOf = (id: string): string => gpuTitle(id, this.titles.get(id) ?? id, gpus);
    this.rows.update(charts, ({ title, remove }, id) => {
      setText(title, titleOf(id));
      setAttribute(remove, 'title', trans.__('Remove %1', titleOf(id)));
      setAttribute(remove, 'aria-label', trans.__('Remove %1', titleOf(id)));
    });
    for (const option of this.select.options) {
      option.disabled = charts.includes(option.value);
      if (this.titles.has(option.value)) {
        setText(option, titleOf(option.value));
      }
    }
    setShown(this.reset, !isDefault);
  }
}
