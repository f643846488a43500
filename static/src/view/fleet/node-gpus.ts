/** The GPUs of a node, where a fleet has too many to list them all. */

import { h, KeyedRows, setShown, setStyle, setText } from '../../lib/dom';
import { remembered } from '../../lib/remembered';
import { trans } from '../../lib/translation';
import { columnsOf } from '../../model/fleet/columns';
import { readingText, shareOf } from '../../model/fleet/metric';
import type { Answered } from '../../model/fleet/reader';
import type { Fleet } from '../../wire';

export class NodeGpus {
  readonly element: HTMLElement;
  private readonly list = h('ol', {});
  private readonly note = h('p', { class: 'gpumon-empty' });
  private readonly columns = remembered(columnsOf);
  private readonly rows = new KeyedRows(
    this.list,
    (row: number) => String(row),
    () => {
      const [index, utilization, memory, fill] = [
        h('span', {}),
        h('span', {}),
        h('span', {}),
        h('span', {}),
      ];
      const meter = h('span', { class: 'gpumon-detail-meter', 'aria-hidden': 'true' }, fill);
      return {
        element: h('li', {}, index, meter, utilization, memory),
        index,
        utilization,
        memory,
        fill,
      };
    },
  );

  constructor() {
    this.element = h('div', { class: 'gpumon-node-gpus' }, this.list, this.note);
  }

  /** `null` where nothing is to be listed. */
  update(answered: Answered<Fleet> | null): void {
    setShown(this.element, answered !== null);
    const fleet = answered?.value ?? null;
    setText(this.note, answered?.why ?? (fleet === null ? trans.__('Loading') : ''));
    setShown(this.note, fleet === null);
    if (fleet === null) {
      this.rows.update([], () => undefined);
      return;
    }
    const columns = this.columns(fleet);
    this.rows.update([...columns.rowsOf(0)], ({ index, utilization, memory, fill }, row) => {
      const share = shareOf(columns, 'utilization', row);
      setText(index, String(columns.index[row] ?? 0));
      setText(utilization, readingText(columns, 'utilization', row));
      setText(memory, readingText(columns, 'memory', row));
      setStyle(fill, 'width', `${Number.isNaN(share) ? 0 : share * 100}%`);
      setStyle(fill, '--_color', 'var(--gpumon-utilization)');
    });
  }
}
