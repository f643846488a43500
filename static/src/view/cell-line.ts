/** The quiet line below a notebook's cell: what its run took of the GPUs. */

import { h, keyed, setAttribute, setText } from '../lib/dom';
import { trans } from '../lib/translation';
import type { CellCost } from '../model/cell-cost';
import { describeCell, type CellPart } from '../model/describe-cell';

export class CellLine {
  readonly element = h('div', {
    class: 'gpumon-cell-line',
    'data-testid': 'gpumon-cell',
    'aria-label': trans.__('GPU use of this cell'),
  });
  private readonly parts = new Map<string, { element: HTMLElement }>();

  /** Shows what a run took, or has taken so far. */
  update(cost: CellCost, running: boolean): void {
    setAttribute(this.element, 'data-running', running ? '' : null);
    const parts = describeCell(cost);
    const shown = keyed(
      this.element,
      this.parts,
      parts,
      (part) => part.id,
      (part) => ({ element: h('span', { 'data-cost': part.id }) }),
    );
    parts.forEach((part, i) => show(part, shown[i]?.element));
  }
}

function show(part: CellPart, element: HTMLElement | undefined): void {
  if (element !== undefined) {
    setText(element, part.text);
    setAttribute(element, 'title', part.title);
  }
}
