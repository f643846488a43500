/** The GPU cost of each run of a notebook's cells, requested from the server. */

import {
  costOfCell,
  requestCost,
  EXECUTION_KEY,
  isWorthShowing,
  recordCell,
  runOf,
  type CellCost,
  type KernelCost,
  type StoredCost,
} from '@gpumon/page/cells';
import type { Feed } from '@gpumon/page/feed';
import { PathExt } from '@jupyterlab/coreutils';
import type { IDisposable } from '@lumino/disposable';

import type { NotebookPanel } from './notebook-panel';
import { PageSubscription } from '../page-subscription';
import { ExecutionTracker, type StartedExecution } from './executions';

/** The sample interval while a cell runs. It is short enough to catch brief peaks. */
const SAMPLE_INTERVAL_MS = 250;
/** The interval of requests to the server while a cell runs. */
const REQUEST_INTERVAL_MS = 1000;
/**
 * The maximum number of characters of code that are recorded, which are enough to recognize a cell.
 */
const MAX_CODE_LENGTH = 2000;

interface Execution extends StartedExecution {
  key: string;
  /** The end of the execution; `null` while it runs. */
  ended_ms: number | null;
  /** The time of the sample that triggered the latest request. */
  asked_ms: number;
  /** The latest reported cost of the run so far. */
  cost: CellCost | null;
}

/** The cost of a run, so far or in total. */
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
  /** Receives the cost of a finished run to store; `null` if the cost is not worth showing. */
  onEnded: (cellId: string, cost: StoredCost | null) => void;
}

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
      execution.cost = this.reportCost(execution, costOfCell(answer), true) ?? execution.cost;
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
   * Reports the cost of a run. If the end of the run was observed (`isSeen`), the cost is also
   * stored.
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
    const known = answer === null ? null : costOfCell(answer);
    const cost = this.reportCost(execution, known ?? execution.cost, false);
    const { cellId, key, code, count } = execution;
    // If only part of the run was measured, the previously stored cost is kept.
    const isKnown = isSeen && answer?.cost.lost.length === 0;
    if (isKnown && this.newest.get(cellId) === key) {
      const cell = this.panel.content.widgets.find(({ model }) => model.id === cellId)?.model;
      const run = runOf(code, count, cell?.getMetadata(EXECUTION_KEY));
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
      void recordCell(execution, request);
    }
    if (this.newest.get(cellId) === key) {
      this.listener.onMeasured(cellId, { cost, running, count });
    }
    return cost;
  }
}
