/**
 * The GPU use of notebooks and their cells in JupyterLab, and the interface to notebooks. It does
 * not use Preact, because notebooks load it before they load Preact.
 */

import { createElement, setAttribute, setShown, setText } from '../lib/dom';
import { formatMemorySize, formatPercent } from '../lib/format';
import { joinParts } from '../lib/text';
import { trans } from '../lib/translation';
import type { CellCost } from '../model/cell-cost';
import {
  describeCell,
  describeStoredCost,
  findChangedEarlierPart,
  type CellPart,
} from '../model/describe-cell';
import type { PathOf } from '../model/holders';
import { computeKernelShare } from '../model/notebooks';
import type { StoredCost, Sample } from '../wire';

export interface NotebookHost {
  pathOf: PathOf;
  open: (kernelId: string) => void;
  /** Opens a menu of actions on a kernel below `anchor`. */
  openMenu: (kernelId: string, anchor: HTMLElement) => void;
}

const PARTS: readonly CellPart['id'][] = ['elapsed', 'gpu', 'peak', 'energy', 'limit'];

/**
 * The line below a notebook's cell: the GPU cost of its run, or the cost that the notebook has
 * stored. It does not use Preact, because notebooks load it before they load Preact.
 */
export class CellLine {
  readonly element = createElement('div', {
    class: 'gpumon-cell-line',
    'data-testid': 'gpumon-cell',
  });
  private readonly label = createElement('span', { class: 'gpumon-cell-stored' });
  private readonly rows = PARTS.map((id) => {
    const now = createElement('span', { 'data-cost': id });
    const was = createElement('span', { class: 'gpumon-cell-was' });
    return { id, now, was, element: createElement('span', {}, now, ' ', was) };
  });

  constructor() {
    const parts = this.rows.map(({ element }) => element);
    this.element.append(
      createElement('span', { class: 'gpumon-cell-parts' }, ...parts),
      this.label,
    );
  }

  /**
   * Shows the cost of a run, which may still be running, and the differences from an earlier run.
   */
  update(cost: CellCost, running: boolean, earlier: StoredCost | null): void {
    const before = earlier === null ? [] : describeStoredCost(earlier, false);
    this.write(describeCell(cost), before, running, null);
  }

  /** Shows the stored cost of the cell's last run, or of an earlier one. */
  updateStored(stored: StoredCost, isLastRun: boolean): void {
    this.write(describeStoredCost(stored, isLastRun), [], false, isLastRun ? 'last' : 'earlier');
  }

  private write(
    parts: readonly CellPart[],
    earlier: readonly CellPart[],
    running: boolean,
    stored: 'last' | 'earlier' | null,
  ): void {
    const { element, label } = this;
    const isEarlier = stored === 'earlier';
    setAttribute(element, 'data-running', running ? '' : null);
    setAttribute(element, 'data-stored', stored);
    setAttribute(
      element,
      'aria-label',
      isEarlier
        ? trans.__('GPU use of an earlier run of this cell')
        : trans.__('GPU use of this cell'),
    );
    setShown(label, stored !== null);
    setText(label, isEarlier ? trans.__('stored, earlier run') : trans.__('stored'));
    setAttribute(label, 'title', parts[0]?.title ?? null);
    for (const { id, now, was, element } of this.rows) {
      const part = parts.find((each) => each.id === id);
      const before = part === undefined ? null : findChangedEarlierPart(part, earlier);
      setShown(element, part !== undefined);
      setText(now, part?.text ?? '');
      setAttribute(now, 'title', part?.title ?? null);
      setShown(was, before !== null);
      setText(was, before === null ? '' : trans.__('was %1', before.own));
      setAttribute(was, 'title', before?.title ?? null);
    }
  }
}

/**
 * An indicator of a notebook's GPU use in a compact form, for a toolbar or the status bar. It does
 * not use Preact, because notebooks load it before they load Preact.
 */
export class Chip {
  readonly element = createElement('button', {
    type: 'button',
    class: 'gpumon-toolbar-chip',
    'data-testid': 'gpumon-chip',
    hidden: '',
  });

  constructor(onClick: () => void) {
    this.element.addEventListener('click', onClick);
  }

  /**
   * Shows the GPU use of a kernel. The indicator is hidden if there is no kernel or the kernel uses
   * no GPU.
   */
  update(sample: Sample | null, kernelId: string | null): void {
    const share =
      sample === null || kernelId === null ? null : computeKernelShare(sample, kernelId);
    setShown(this.element, share !== null && share.gpus.length > 0);
    if (share === null || share.gpus.length === 0) {
      return;
    }
    const memory = share.bytes === null ? null : formatMemorySize(share.bytes);
    const busy = share.sm_percent === null ? null : formatPercent(share.sm_percent);
    setText(this.element, joinParts([trans.__('GPU'), memory, busy], ' '));
    setAttribute(this.element, 'title', chipTitle(share.gpus.join(', '), memory, busy));
  }
}

function chipTitle(gpus: string, memory: string | null, busy: string | null): string {
  return joinParts(
    [
      memory === null
        ? trans.__('This notebook uses GPU %1.', gpus)
        : trans.__('This notebook holds %1 of GPU %2.', memory, gpus),
      busy === null ? null : trans.__('Its kernels ran %1 of the time.', busy),
      trans.__('Click for all GPUs.'),
    ],
    ' ',
  );
}
