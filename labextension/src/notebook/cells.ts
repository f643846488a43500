/** Measures what each run of a notebook's cells uses of the GPUs. */

import {
  CellMeter,
  EXECUTION_KEY,
  isWorthShowing,
  record,
  runOf,
  storedCost,
  type CellCost,
  type StoredCost,
} from '@gpumon/page/cells';
import type { Feed } from '@gpumon/page/feed';
import { PathExt } from '@jupyterlab/coreutils';
import type { IDisposable } from '@lumino/disposable';

import type { NotebookPanel } from './notebook-panel';
import { PageSubscription } from '../page-subscription';
import { ExecutionTracker, type StartedExecution } from './executions';

/** While a cell runs: often enough to see a peak that does not last. */
const RUNNING_MS = 250;
/** A run of less than this needs no line while it lasts. */
const SHOW_AFTER_MS = 1000;
/** The next samples tell the last part of a run; where none come, what is known is all. */
const LAST_SAMPLES_MS = 5000;
/** Enough to know a cell again. */
const LONGEST_CODE = 2000;

interface Execution extends StartedExecution {
  key: string;
  meter: CellMeter;
}

/** The cost of a run, so far or in total. */
export interface MeasuredRun {
  cost: CellCost;
  running: boolean;
  /** The execution count of the kernel. */
  count: number | null;
}

/** Is told what the newest run of each cell takes. */
export interface CellCostListener {
  started: (cellId: string) => void;
  measured: (cellId: string, run: MeasuredRun) => void;
  /** It has ended, and this is to be stored: what it took, or `null` where that was not worth showing. */
  ended: (cellId: string, cost: StoredCost | null) => void;
}

export class CellCosts implements IDisposable {
  isDisposed = false;
  private readonly executions = new Map<string, Execution>();
  /** The newest run of each cell. */
  private readonly newest = new Map<string, string>();
  private readonly subscription: PageSubscription;
  private readonly tracker: ExecutionTracker;

  constructor(
    private readonly panel: NotebookPanel,
    private readonly feed: Feed,
    private readonly listener: CellCostListener,
  ) {
    this.tellKnown();
    this.subscription = new PageSubscription(feed, (frame) => {
      if (frame?.type === 'sample') {
        this.onSample();
      }
    });
    this.tracker = new ExecutionTracker(panel.sessionContext, {
      started: (key, what) => {
        const meter = new CellMeter(what.kernelId, what.at_ms, feed.store.sample);
        this.newest.set(what.cellId, key);
        this.executions.set(key, { ...what, key, meter });
        this.listener.started(what.cellId);
        this.subscription.measure(RUNNING_MS);
      },
      ended: (execution, at_ms) => {
        this.executions.get(execution)?.meter.end(at_ms);
        setTimeout(() => this.finish(execution), LAST_SAMPLES_MS);
      },
      abandoned: () => {
        for (const execution of [...this.executions.keys()]) {
          this.finish(execution);
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

  /** A page that was loaded anew still knows what cells took that this kernel ran. */
  private tellKnown(): void {
    const { cells } = this.feed.store;
    cells.keepIn(() => sessionStorage);
    const kernelId = this.panel.sessionContext.session?.kernel?.id;
    for (const { key, cellId, cost, count } of cells.executions.filter(
      (one) => one.kernelId === kernelId,
    )) {
      this.newest.set(cellId, key);
      this.listener.measured(cellId, { cost, running: false, count });
    }
  }

  private onSample(): void {
    const { sample, traces } = this.feed.store;
    if (sample === null) {
      return;
    }
    for (const [id, execution] of [...this.executions]) {
      const isOver = execution.meter.addSample(sample);
      if (isOver && execution.meter.isRecorded(traces)) {
        this.finish(id);
      } else if (isOver || sample.at_ms - execution.at_ms > SHOW_AFTER_MS) {
        this.tell(execution, !isOver);
      }
    }
  }

  private finish(id: string): void {
    const execution = this.executions.get(id);
    if (execution === undefined || this.isDisposed) {
      return;
    }
    this.executions.delete(id);
    const cost = this.tell(execution, false);
    const { cellId, key, meter, code, count } = execution;
    // Of a run that did not end, or whose end nobody saw, not all is known.
    if (meter.isFinished && this.newest.get(cellId) === key) {
      const cell = this.panel.content.widgets.find(({ model }) => model.id === cellId)?.model;
      const run = runOf(code, count, cell?.getMetadata(EXECUTION_KEY));
      this.listener.ended(
        cellId,
        cost === null ? null : storedCost(cost, this.feed.store.inventory, run),
      );
    }
    if (this.executions.size === 0) {
      this.subscription.measure(null);
    }
  }

  /** Tells what it has taken, and gives that where it is worth showing. */
  private tell(
    { key, cellId, kernelId, count, code, meter }: Execution,
    running: boolean,
  ): CellCost | null {
    const cost = meter.cost(this.feed.store.traces);
    if (cost === null || !isWorthShowing(cost)) {
      return null;
    }
    const { path } = this.panel.sessionContext;
    const notebook = PathExt.basename(path);
    const shown = code.slice(0, LONGEST_CODE);
    const execution = { key, kernelId, cellId, notebook, path, count, code: shown, running, cost };
    this.feed.store.cells.put(execution);
    const { request } = this.feed.options;
    if (!running && request !== undefined) {
      void record(execution, request);
    }
    if (this.newest.get(cellId) === key) {
      this.listener.measured(cellId, { cost, running, count });
    }
    return cost;
  }
}
