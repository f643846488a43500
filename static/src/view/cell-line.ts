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
  private readonly words = new Map<string, { element: HTMLElement }>();

  /** Shows what a run took, or has taken so far. */
  update(cost: CellCost, running: boolean): void {
    setAttribute(this.element, 'data-running', running ? '' : null);
    const words = describeCell(cost);
    const shown = keyed(
      this.element,
      this.words,
      words,
      (word) => word.id,
      (word) => ({ element: h('span', { 'data-cost': word.id }) }),
    );
    words.forEach((word, i) => {
      show(word, shown[i]?.element);
    });
  }
}

function show(word: CellPart, element: HTMLElement | undefined): void {
  if (element !== undefined) {
    setText(element, word.text);
    setAttribute(element, 'title', word.title);
  }
}
