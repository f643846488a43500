/**
 * The line below a notebook's cell: what its run used of the GPUs, or what the notebook has stored
 * of a run.
 */

import { h, KeyedRows, setAttribute, setShown, setText } from '../lib/dom';
import { trans } from '../lib/translation';
import type { CellCost } from '../model/cell-cost';
import { describeCell, describeStored, earlierPart, type CellPart } from '../model/describe-cell';
import type { StoredCost } from '../wire';

interface Row {
  element: HTMLElement;
  now: HTMLElement;
  /** The same of an earlier run. */
  was: HTMLElement;
}

export class CellLine {
  readonly element = h('div', { class: 'gpumon-cell-line', 'data-testid': 'gpumon-cell' });
  private readonly label = h('span', { class: 'gpumon-cell-stored' });
  private readonly list = h('span', { class: 'gpumon-cell-parts' });
  private readonly parts = new KeyedRows<CellPart, Row>(
    this.list,
    ({ id }) => id,
    ({ id }) => {
      const now = h('span', { 'data-cost': id });
      const was = h('span', { class: 'gpumon-cell-was', hidden: '' });
      return { element: h('span', {}, now, ' ', was), now, was };
    },
  );

  constructor() {
    this.element.append(this.list, this.label);
  }

  /** Shows what a run took, or has taken so far, and beside it what an earlier one took that was another. */
  update(cost: CellCost, running: boolean, earlier: StoredCost | null): void {
    this.write(
      describeCell(cost),
      earlier === null ? [] : describeStored(earlier, false),
      running,
      null,
    );
  }

  /** Shows the stored cost of the cell's last run, or of an earlier one. */
  updateStored(stored: StoredCost, isLastRun: boolean): void {
    this.write(describeStored(stored, isLastRun), [], false, isLastRun ? 'last' : 'earlier');
  }

  private write(
    parts: readonly CellPart[],
    earlier: readonly CellPart[],
    running: boolean,
    stored: 'last' | 'earlier' | null,
  ): void {
    const { element, label } = this;
    setAttribute(element, 'data-running', running ? '' : null);
    setAttribute(element, 'data-stored', stored);
    setAttribute(
      element,
      'aria-label',
      stored === 'earlier'
        ? trans.__('GPU use of an earlier run of this cell')
        : trans.__('GPU use of this cell'),
    );
    setShown(label, stored !== null);
    setText(
      label,
      stored === null
        ? ''
        : stored === 'last'
          ? trans.__('stored')
          : trans.__('stored, earlier run'),
    );
    setAttribute(label, 'title', parts[0]?.title ?? null);
    this.parts.update(parts, ({ now, was }, part) => {
      setText(now, part.text);
      setAttribute(now, 'title', part.title);
      const before = earlierPart(part, earlier);
      setShown(was, before !== null);
      setText(was, before === null ? '' : trans.__('was %1', before.own));
      setAttribute(was, 'title', before?.title ?? null);
    });
  }
}
