/**
 * The lines below a notebook's cells: what runs take of the GPUs, and until then what the notebook
 * has stored of earlier ones, for which neither a server nor a kernel is needed.
 */

import { CellLine, type StoredCost } from '@gpumon/page/cells';
import cellStyle from '@gpumon/page/cell.css?inline';
import type { Feed } from '@gpumon/page/feed';
import { adoptStyle } from '@gpumon/page/style';
import type { IDisposable } from '@lumino/disposable';

import type { Settings } from '../settings';
import { BelowCells } from './below-cells';
import { CellCosts, type CellCostListener, type MeasuredRun } from './cells';
import type { CellModel, NotebookPanel } from './notebook-panel';
import { hasStoredCosts, isOfLastRun, storeCost, storedCostOf } from './stored-costs';

/** A notebook changes with every key and every line of output. */
const REFRESH_MS = 300;

export interface CellLinesOptions {
  /**
   * The connection, whose making also sets language and units; it need not have reached a server.
   */
  feed: () => Promise<Feed>;
  /** What is chosen now. */
  settings: () => Pick<Settings, 'cellLine' | 'storeCosts'> | null;
}

export class CellLines implements IDisposable, CellCostListener {
  isDisposed = false;
  private readonly lines: BelowCells<CellLine>;
  /** The newest run of each cell whose line shows a run. */
  private readonly measuredRuns = new Map<string, MeasuredRun>();
  /** What was stored of cells before their newest run. */
  private readonly earlier = new Map<string, StoredCost | null>();
  private costs: CellCosts | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly panel: NotebookPanel,
    private readonly options: CellLinesOptions,
  ) {
    adoptStyle(cellStyle);
    this.lines = new BelowCells(panel);
    void this.follow();
  }

  started(cellId: string): void {
    this.measuredRuns.delete(cellId);
    const cell = this.cell(cellId);
    if (cell !== undefined) {
      this.earlier.set(cellId, storedCostOf(cell));
      this.showStored(cell);
    }
  }

  measured(cellId: string, run: MeasuredRun): void {
    const cell = this.cell(cellId);
    if (cell !== undefined && isLastRun(run, cell)) {
      this.measuredRuns.set(cellId, run);
      this.attach(cellId)?.update(run.cost, run.running, this.earlier.get(cellId) ?? null);
    }
  }

  ended(cellId: string, cost: StoredCost | null): void {
    const cell = this.cell(cellId);
    if (cell === undefined) {
      return;
    }
    // Store the cost of this run, or remove the cost of an earlier one.
    storeCost(cell, this.options.settings()?.storeCosts === true ? cost : null);
    if (cost === null) {
      this.measuredRuns.delete(cellId);
      this.showStored(cell);
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

  private async follow(): Promise<void> {
    const { panel, options } = this;
    // Where nothing is stored, there is nothing to say before something runs.
    await (hasStoredCosts(panel) ? null : panel.sessionContext.ready);
    const feed = await options.feed();
    this.followStored();
    await panel.sessionContext.ready;
    this.followRuns(feed);
  }

  private followStored(): void {
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

  /** Cells may have come, moved or gone, or somebody else has changed what is stored. */
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
        this.showStored(model);
      }
    }
  }

  private showStored(cell: CellModel): void {
    const stored = storedCostOf(cell);
    if (stored === null) {
      this.lines.remove(cell.id);
    } else {
      this.attach(cell.id)?.updateStored(stored, isOfLastRun(stored, cell));
    }
  }

  private attach(cellId: string): CellLine | null {
    return this.options.settings()?.cellLine === true
      ? this.lines.attach(cellId, () => new CellLine())
      : null;
  }

  private cell(cellId: string): CellModel | undefined {
    return this.panel.content.widgets.find(({ model }) => model.id === cellId)?.model;
  }
}

/** Returns `true` if the cell was not run again elsewhere, such as on another page. */
function isLastRun({ running, count }: MeasuredRun, { executionCount }: CellModel): boolean {
  return running || count === null || executionCount === null || executionCount === count;
}
