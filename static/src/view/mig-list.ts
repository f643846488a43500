/** The MIG devices or partitions of a GPU: what each holds of its memory, and what its parts do. */

import { h, KeyedRows, setAttribute, setShown, setStyle, setText } from '../lib/dom';
import { memoryNumber, memoryTotal, percent } from '../lib/format';
import { trans } from '../lib/translation';
import type { GpuState } from '../model/gpu';
import { migRows, type MigRow } from '../model/mig';
import { wordsOf } from '../model/vendor-words';
import { ReadingValue, type Freshness } from './value';

export class MigList {
  readonly element: HTMLElement;
  private readonly heading = h('h3', { class: 'gpumon-group' });
  private readonly list = h('ul', { class: 'gpumon-mig' });
  private readonly rows = new KeyedRows(
    this.list,
    ({ uuid }: MigRow) => uuid,
    () => new Row(),
  );

  constructor() {
    this.element = h('section', {}, this.heading, this.list);
  }

  update(gpu: GpuState, freshness: Freshness): void {
    const devices = migRows(gpu);
    const { partitions } = wordsOf(gpu);
    setAttribute(this.element, 'aria-label', partitions);
    setText(this.heading, partitions);
    setShown(this.element, devices.length > 0);
    this.rows.update(devices, (row, device) => row.update(device, freshness));
  }
}

class Row {
  readonly element: HTMLElement;
  private readonly name = h('span', { class: 'gpumon-mig-name' });
  private readonly instance = h('span', { class: 'gpumon-mig-instance' });
  private readonly fill = h('span', { class: 'gpumon-mig-fill' });
  private readonly memory = new ReadingValue('mig.memory.used_bytes');
  private readonly sm = new ReadingValue('mig.activity.sm_percent');
  private readonly tensor = new ReadingValue('mig.activity.tensor_percent');

  constructor() {
    this.element = h(
      'li',
      {},
      this.name,
      this.instance,
      h('span', { class: 'gpumon-mig-bar', 'aria-hidden': 'true' }, this.fill),
      this.memory.element,
      labeled('SM', this.sm),
      labeled(trans.__('tensor'), this.tensor),
    );
  }

  update(device: MigRow, freshness: Freshness): void {
    setAttribute(this.element, 'data-mig-uuid', device.uuid);
    setAttribute(this.element, 'title', device.uuid);
    setText(this.name, device.name);
    setText(this.instance, device.instance);
    setStyle(this.fill, 'width', `${(device.share * 100).toFixed(1)}%`);
    this.memory.update(device.used_bytes, memoryNumber, freshness, memoryTotal(device.total_bytes));
    this.sm.update(device.sm_percent, percent, freshness);
    this.tensor.update(device.tensor_percent, percent, freshness);
  }
}

function labeled(label: string, value: ReadingValue): HTMLElement {
  return h(
    'span',
    { class: 'gpumon-mig-part' },
    h('span', { class: 'gpumon-direction-label' }, `${label} `),
    value.element,
  );
}
