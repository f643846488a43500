/** The quiet line below a notebook's cell: what its run took of the GPUs. */

import { h, KeyedRows, setAttribute, setText } from '../lib/dom';
import { trans } from '../lib/translation';
import type { CellCost } from '../model/cell-cost';
import { describeCell, type CellPart } from '../model/describe-cell';

export class CellLine {
  readonly element = h('div', {
    class: 'gpumon-cell-line',
    'data-testid': 'gpumon-cell',
    'aria-label': trans.__('GPU use of this cell'),
  });
  private readonly parts = new KeyedRows(
    this.element,
    ({ id }: CellPart) => id,
    ({ id }) => ({ element: h('span', { 'data-cost': id }) }),
  );

  /** Shows what a run took, or has taken so far. */
  update(cost: CellCost, running: boolean): void {
    setAttribute(this.element, 'data-running', running ? '' : null);
    this.parts.update(describeCell(cost), ({ element }, { text, title }) => {
      setText(element, text);
      setAttribute(element, 'title', title);
    });
  }
}
