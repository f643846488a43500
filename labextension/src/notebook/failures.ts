/** Explains below a cell that ran out of GPU memory who holds it. */

import type { Feed } from '@gpumon/page/feed';
import { fullerSample, oomErrorOf, OomNote, describeOom, type OomError, type Sample } from '@gpumon/page/oom';
import oomStyle from '@gpumon/page/oom.css?inline';
import type { IDisposable } from '@lumino/disposable';

import { BelowCells } from './below-cells';
import type { NotebookPanel } from './notebook-panel';
import type { LabNotebooks } from './notebooks';
import { PageSubscription } from '../page-subscription';
import { ExecutionTracker } from './executions';
import { addStyle } from '../style';

/** An older sample than this tells nothing about now. */
const FRESH_MS = 5000;

interface Failure {
  cellId: string;
  kernelId: string;
  error: OomError;
  before: Sample | null;
}

export class CellFailures implements IDisposable {
  isDisposed = false;
  private readonly executions = new Map<string, { cellId: string; kernelId: string }>();
  private readonly notes: BelowCells<OomNote>;
  /** Those that the next sample may tell more about. */
  private fresh: Failure[] = [];
  private readonly subscription: PageSubscription;
  private readonly tracker: ExecutionTracker;

  constructor(
    panel: NotebookPanel,
    private readonly feed: Feed,
    private readonly notebooks: LabNotebooks,
  ) {
    addStyle('gpumon-oom-style', oomStyle);
    // Nearer to the error than what the run took.
    this.notes = new BelowCells(panel, () => new OomNote(notebooks), '.gpumon-cell-line');
    this.subscription = new PageSubscription(feed, (frame) => {
      if (frame?.type === 'sample') {
        for (const failure of this.fresh.splice(0)) {
          this.show(failure, fullerSample(failure.before, frame, failure.kernelId));
        }
      }
    });
    this.tracker = new ExecutionTracker(panel.sessionContext, {
      started: (execution, { cellId, kernelId }) => {
        this.executions.set(execution, { cellId, kernelId });
        this.fresh = this.fresh.filter((failure) => failure.cellId !== cellId);
        this.notes.remove(cellId);
      },
      ended: (execution) => this.executions.delete(execution),
      abandoned: () => this.executions.clear(),
      failed: (execution, kernelError) => {
        const failed = this.executions.get(execution);
        const error = oomErrorOf(kernelError);
        // The first error says all; a later one for the same run adds nothing.
        this.executions.delete(execution);
        if (failed !== undefined && error !== null) {
          const failure = { ...failed, error, before: this.newest() };
          this.fresh.push(failure);
          this.show(failure, failure.before);
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
    this.notes.dispose();
  }

  private newest(): Sample | null {
    const { sample, clock } = this.feed.store;
    return sample !== null && clock.now() - sample.at_ms < FRESH_MS ? sample : null;
  }

  private show({ cellId, kernelId, error }: Failure, sample: Sample | null): void {
    const { notebooks } = this;
    const { inventory } = this.feed.store;
    const description = describeOom(error, { inventory, sample, kernelId, nameOf: (id) => notebooks.nameOf(id) });
    if (description !== null) {
      this.notes.attach(cellId)?.update(description);
    }
  }
}
