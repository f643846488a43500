/**
 * Requests the GPU cost of each run of a notebook's cells from the server, and shows the cost in a
 * line below the cell.
 */

import notebookStyle from '@gpumon/page/notebook.css?inline';
import {
  CellLine,
  toCellCost,
  EXECUTION_KEY,
  isWorthShowing,
  sendCellCost,
  requestCost,
  makeCellRun,
  type CellCost,
  type KernelCost,
  type StoredCost,
} from '@gpumon/page/cells';
import type { Feed } from '@gpumon/page/feed';
import { addStyleSheetOnce } from '@gpumon/page/dom';
import { PathExt } from '@jupyterlab/coreutils';
import type { IDisposable } from '@lumino/disposable';

import { PageSubscription } from '../page-subscription';
import type { Settings } from '../settings';
import { ExecutionTracker, type StartedExecution } from './executions';
import { CellAttachments, findCell, type CellModel, type NotebookPanel } from './notebook-panel';
import { findStoredCost, hasStoredCosts, isFromLastRun, storeCost } from './stored-costs';

/** The sample interval while a cell runs. It is short enough to catch brief peaks. */
const SAMPLE_INTERVAL_MS = 250;
/** The interval of requests to the server while a cell runs. */
const REQUEST_INTERVAL_MS = 1000;
/**
 * The maximum number of characters of code that are recorded, which are enough to recognize a cell.
 */
const MAX_CODE_LENGTH = 2000;
/**
 * Changes of a notebook are collected for this long and then handled together, because a notebook
 * changes with every key press and every line of output.
 */
const REFRESH_MS = 300;

interface Execution extends StartedExecution {
  key: string;
  /** The end of the execution; `null` while it runs. */
  ended_ms: number | null;
  /** The time of the sample that triggered the latest request. */
  asked_ms: number;
  /** The latest reported cost of the run so far. */
  cost: CellCost | null;
}

/** The cost of a run: the cost so far while the cell runs, and the total cost afterwards. */
export interface MeasuredRun {
  cost: CellCost;
  running: boolean;
  /** The kernel's execution count. */
  count: number | null;
}

/** Receives the costs of the newest run of each cell. */
export interface CellCostListener {
  onStarted: (cellId: string) => void;
  onMeasured: (cellId: string, run: MeasuredRun) => void;
  /**
   * Called when a run has finished, but not if a part of the run was not measured. The listener
   * stores the cost, which is `null` if it is not worth showing.
   */
  onEnded: (cellId: string, cost: StoredCost | null) => void;
}

/** Requests the GPU cost of each run of a notebook's cells from the server. */
export class CellCosts implements IDisposable {
  isDisposed = false;
  private readonly executions = new Map<string, Execution>();
  /** The key of the newest run by cell ID. */
  private readonly newest = new Map<string, string>();
  private readonly subscription: PageSubscription;
  private readonly tracker: ExecutionTracker;

  constructor(
    private readonly panel: NotebookPanel,
    private readonly feed: Feed,
    private readonly listener: CellCostListener,
  ) {
    this.reportRecordedCosts();
    this.subscription = new PageSubscription(feed, (frame) => {
      if (frame?.type === 'sample') {
        this.onSample();
      }
    });
    this.tracker = new ExecutionTracker(panel.sessionContext, {
      started: (key, what) => {
        this.newest.set(what.cellId, key);
        this.executions.set(key, {
          ...what,
          key,
          ended_ms: null,
          asked_ms: what.at_ms,
          cost: null,
        });
        this.listener.onStarted(what.cellId);
        this.subscription.setMeasurementInterval(SAMPLE_INTERVAL_MS);
      },
      ended: (execution, at_ms) => {
        void this.finishExecution(execution, at_ms, true);
      },
      abandoned: () => {
        for (const [execution, { at_ms }] of [...this.executions]) {
          void this.finishExecution(
            execution,
            Math.max(at_ms, feed.store.sample?.at_ms ?? 0),
            false,
          );
        }
      },
    });
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.isDisposed = true;
    this.tracker.dispose();
    this.subscription.dispose();
  }

  /**
   * Reports the recorded costs of cells that this kernel has run. Recorded costs survive a reload
   * of the page.
   */
  private reportRecordedCosts(): void {
    const { cells } = this.feed.store;
    cells.attachStorage(() => sessionStorage);
    const kernelId = this.panel.sessionContext.session?.kernel?.id;
    for (const { key, cellId, cost, count } of cells.executions.filter(
      (one) => one.kernelId === kernelId,
    )) {
      this.newest.set(cellId, key);
      this.listener.onMeasured(cellId, { cost, running: false, count });
    }
  }

  private onSample(): void {
    const at_ms = this.feed.store.sample?.at_ms ?? 0;
    for (const execution of this.executions.values()) {
      if (execution.ended_ms === null && at_ms - execution.asked_ms > REQUEST_INTERVAL_MS) {
        execution.asked_ms = at_ms;
        void this.requestCostSoFar(execution);
      }
    }
  }

  private async requestCostSoFar(execution: Execution): Promise<void> {
    const answer = await this.requestRunCost(execution);
    if (answer !== null && execution.ended_ms === null && !this.isDisposed) {
      execution.cost = this.reportCost(execution, toCellCost(answer), true) ?? execution.cost;
    }
  }

  private async requestRunCost({
    kernelId,
    at_ms,
    ended_ms,
  }: Execution): Promise<KernelCost | null> {
    const { request } = this.feed.options;
    return request === undefined ? null : requestCost(kernelId, at_ms, ended_ms, request);
  }

  /**
   * Reports the final cost of a run. If the end of the run was observed (`isSeen`), the cost is
   * also reported for storage.
   */
  private async finishExecution(id: string, ended_ms: number, isSeen: boolean): Promise<void> {
    const execution = this.executions.get(id);
    if (execution?.ended_ms !== null) {
      return;
    }
    // The span of a run must be at least 1 ms long.
    execution.ended_ms = Math.max(execution.at_ms + 1, ended_ms);
    const answer = await this.requestRunCost(execution);
    this.executions.delete(id);
    if (this.isDisposed) {
      return;
    }
    const known = answer === null ? null : toCellCost(answer);
    const cost = this.reportCost(execution, known ?? execution.cost, false);
    const { cellId, key, code, count } = execution;
    // If part of the run was not measured, the cost that was stored before is kept.
    const isKnown = isSeen && answer?.cost.lost.length === 0;
    if (isKnown && this.newest.get(cellId) === key) {
      const cell = findCell(this.panel, cellId)?.model;
      const run = makeCellRun(code, count, cell?.getMetadata(EXECUTION_KEY));
      const stored = cost === null ? null : answer.stored;
      this.listener.onEnded(cellId, stored === null ? null : { ...stored, run });
    }
    if (this.executions.size === 0) {
      this.subscription.setMeasurementInterval(null);
    }
  }

  /**
   * Reports the cost of a run if the cost is worth showing or was shown before. Returns the
   * reported cost, or `null`.
   */
  private reportCost(
    { key, cellId, kernelId, count, code, cost: shownCost }: Execution,
    cost: CellCost | null,
    running: boolean,
  ): CellCost | null {
    if (cost === null || (shownCost === null && !isWorthShowing(cost))) {
      return null;
    }
    const { path } = this.panel.sessionContext;
    const notebook = PathExt.basename(path);
    const shown = code.slice(0, MAX_CODE_LENGTH);
    const execution = { key, kernelId, cellId, notebook, path, count, code: shown, running, cost };
    this.feed.store.cells.put(execution);
    const { request } = this.feed.options;
    if (!running && request !== undefined) {
      void sendCellCost(execution, request);
    }
    if (this.newest.get(cellId) === key) {
      this.listener.onMeasured(cellId, { cost, running, count });
    }
    return cost;
  }
}

export interface CellLinesOptions {
  /**
   * Returns the feed, which may not be connected to a server yet. When the feed is created, the
   * language and the units are also set.
   */
  feed: () => Promise<Feed>;
  /** Returns the current settings. */
  settings: () => Pick<Settings, 'cellLine' | 'storeCosts'> | null;
}

/**
 * The lines below a notebook's cells. They show the GPU cost of runs. Before a cell is run, its
 * line shows the stored cost of an earlier run. Stored costs are shown even without a server or a
 * kernel.
 */
export class CellLines implements IDisposable, CellCostListener {
  isDisposed = false;
  private readonly lines: CellAttachments<CellLine>;
  /** The newest run of each cell, for cells whose line shows a measured run. */
  private readonly measuredRuns = new Map<string, MeasuredRun>();
  /** For each cell, the cost that was stored before the cell's newest run. */
  private readonly earlier = new Map<string, StoredCost | null>();
  private costs: CellCosts | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly panel: NotebookPanel,
    private readonly options: CellLinesOptions,
  ) {
    addStyleSheetOnce(notebookStyle);
    this.lines = new CellAttachments(panel);
    void this.startWhenReady();
  }

  onStarted(cellId: string): void {
    this.measuredRuns.delete(cellId);
    const cell = findCell(this.panel, cellId)?.model;
    if (cell !== undefined) {
      this.earlier.set(cellId, findStoredCost(cell));
      this.showStoredCost(cell);
    }
  }

  onMeasured(cellId: string, run: MeasuredRun): void {
    const cell = findCell(this.panel, cellId)?.model;
    if (cell !== undefined && isLastRun(run, cell)) {
      this.measuredRuns.set(cellId, run);
      this.attach(cellId)?.update(run.cost, run.running, this.earlier.get(cellId) ?? null);
    }
  }

  onEnded(cellId: string, cost: StoredCost | null): void {
    const cell = findCell(this.panel, cellId)?.model;
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

  private async startWhenReady(): Promise<void> {
    const { panel, options } = this;
    // Without stored costs, nothing is shown until a cell runs. Therefore the feed is requested
    // only when the kernel is ready.
    await (hasStoredCosts(panel) ? null : panel.sessionContext.ready);
    const feed = await options.feed();
    this.watchStoredCosts();
    await panel.sessionContext.ready;
    this.startMeasuringRuns(feed);
  }

  private watchStoredCosts(): void {
    if (!this.isDisposed) {
      this.panel.context.model.contentChanged.connect(this.onChange);
      this.refresh();
    }
  }

  private startMeasuringRuns(feed: Feed): void {
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
}

/**
 * Returns whether a measured run is the cell's last run. Returns `false` if the cell was later run
 * elsewhere, for example on another page.
 */
function isLastRun({ running, count }: MeasuredRun, { executionCount }: CellModel): boolean {
  return running || count === null || executionCount === null || executionCount === count;
}
