/**
 * The lines below a notebook's cells. They show the GPU cost of runs, and before that the stored
 * cost of earlier runs, which needs neither a server nor a kernel.
 */

import { CellLine, type StoredCost } from '@gpumon/page/cells';
import notebookStyle from '@gpumon/page/notebook.css?inline';
import type { Feed } from '@gpumon/page/feed';
import { adoptStyle } from '@gpumon/page/dom';
import type { IDisposable } from '@lumino/disposable';

import type { Settings } from '../settings';
import { CellAttachments } from './below-cells';
import { CellCosts, type CellCostListener, type MeasuredRun } from './cells';
import type { CellModel, NotebookPanel } from './notebook-panel';
import { hasStoredCosts, isFromLastRun, storeCost, findStoredCost } from './stored-costs';

/**
 * The delay of an update, because a notebook changes with every key press and every line of output.
 */
const REFRESH_MS = 300;

export interface CellLinesOptions {
  /**
   * Returns the feed, which may not be connected to a server yet. Creating the feed also sets the
   * language and the units.
   */
  feed: () => Promise<Feed>;
  /** Returns the current settings. */
  settings: () => Pick<Settings, 'cellLine' | 'storeCosts'> | null;
}

export class CellLines implements IDisposable, CellCostListener {
  isDisposed = false;
  private readonly lines: CellAttachments<CellLine>;
  /** The newest run of each cell whose line shows a measured run. */
  private readonly measuredRuns = new Map<string, MeasuredRun>();
  /** The stored cost of each cell before its newest run. */
  private readonly earlier = new Map<string, StoredCost | null>();
  private costs: CellCosts | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly panel: NotebookPanel,
    private readonly options: CellLinesOptions,
  ) {
    adoptStyle(notebookStyle);
    this.lines = new CellAttachments(panel);
    void this.followNotebook();
  }

  onStarted(cellId: string): void {
    this.measuredRuns.delete(cellId);
    const cell = this.findCell(cellId);
    if (cell !== undefined) {
      this.earlier.set(cellId, findStoredCost(cell));
      this.showStoredCost(cell);
    }
  }

  onMeasured(cellId: string, run: MeasuredRun): void {
    const cell = this.findCell(cellId);
    if (cell !== undefined && isLastRun(run, cell)) {
      this.measuredRuns.set(cellId, run);
      this.attach(cellId)?.update(run.cost, run.running, this.earlier.get(cellId) ?? null);
    }
  }

  onEnded(cellId: string, cost: StoredCost | null): void {
    const cell = this.findCell(cellId);
    if (cell === undefined) {
      return;
    }
    // The cost of this run replaces the stored cost of an earlier run, or removes it.
    storeCost(cell, this.options.settings()?.storeCosts === true ? cost : null);
    if (cost === null) {
      this.measuredRuns.delete(cellId);
      this.showStoredCost(cell);
    }
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.isDisposed = true;
    clearTimeout(this.timer);
    this.panel.context.model.contentChanged.disconnect(this.onChange);
    this.costs?.dispose();
    this.lines.dispose();
  }

  private async followNotebook(): Promise<void> {
    const { panel, options } = this;
    // Without stored costs, nothing is shown until a cell runs, so the feed is requested only when
    // the kernel is ready.
    await (hasStoredCosts(panel) ? null : panel.sessionContext.ready);
    const feed = await options.feed();
    this.followStoredCosts();
    await panel.sessionContext.ready;
    this.followRuns(feed);
  }

  private followStoredCosts(): void {
    if (!this.isDisposed) {
      this.panel.context.model.contentChanged.connect(this.onChange);
      this.refresh();
    }
  }

  private followRuns(feed: Feed): void {
    if (!this.isDisposed) {
      this.costs = new CellCosts(this.panel, feed, this);
    }
  }

  /**
   * Updates the lines after cells were added, moved or removed, or after another user has changed
   * the stored costs.
   */
  private readonly onChange = (): void => {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.refresh();
    }, REFRESH_MS);
  };

  private refresh(): void {
    for (const { model } of this.panel.content.widgets) {
      const run = this.measuredRuns.get(model.id);
      if (run !== undefined && isLastRun(run, model)) {
        this.attach(model.id);
      } else {
        this.measuredRuns.delete(model.id);
        this.showStoredCost(model);
      }
    }
  }

  private showStoredCost(cell: CellModel): void {
    const stored = findStoredCost(cell);
    if (stored === null) {
      this.lines.remove(cell.id);
    } else {
      this.attach(cell.id)?.updateStored(stored, isFromLastRun(stored, cell));
    }
  }

  private attach(cellId: string): CellLine | null {
    return this.options.settings()?.cellLine === true
      ? this.lines.attach(cellId, () => new CellLine())
      : null;
  }

  private findCell(cellId: string): CellModel | undefined {
    return this.panel.content.widgets.find(({ model }) => model.id === cellId)?.model;
  }
}

/** Returns `false` if the cell has been run again elsewhere, for example on another page. */
function isLastRun({ running, count }: MeasuredRun, { executionCount }: CellModel): boolean {
  return running || count === null || executionCount === null || executionCount === count;
}
