/** Explains below a cell that ran out of GPU memory who holds it. */

import type { Feed } from '@gpumon/page/feed';
import type { KernelError, OomNote, Sample } from '@gpumon/page/oom';
import oomStyle from '@gpumon/page/oom.css?inline';
import { adoptStyle } from '@gpumon/page/style';
import type { IDisposable } from '@lumino/disposable';

import { BelowCells } from './below-cells';
import type { NotebookPanel } from './notebook-panel';
import type { LabNotebooks } from './notebooks';
import { PageSubscription } from '../page-subscription';
import { ExecutionTracker, type StartedExecution } from './executions';

/** An older sample than this tells nothing about now. */
const FRESH_MS = 5000;

type Failed = Pick<StartedExecution, 'cellId' | 'kernelId'>;

export class CellFailures implements IDisposable {
  isDisposed = false;
  private readonly executions = new Map<string, Failed>();
  private readonly notes: BelowCells<OomNote>;
  /** By cell, what tells more of its failure with the next sample. */
  private readonly fresh = new Map<string, (sample: Sample) => void>();
  private readonly subscription: PageSubscription;
  private readonly tracker: ExecutionTracker;

  constructor(
    panel: NotebookPanel,
    private readonly feed: Feed,
    private readonly notebooks: LabNotebooks,
  ) {
    // Nearer to the error than what the run took.
    this.notes = new BelowCells(panel, '.gpumon-cell-line');
    this.subscription = new PageSubscription(feed, (frame) => {
      if (frame?.type === 'sample') {
        this.fresh.forEach((tell) => tell(frame));
        this.fresh.clear();
      }
    });
    this.tracker = new ExecutionTracker(panel.sessionContext, {
      started: (execution, { cellId, kernelId }) => {
        this.executions.set(execution, { cellId, kernelId });
        this.fresh.delete(cellId);
        this.notes.remove(cellId);
      },
      ended: (execution) => this.executions.delete(execution),
      abandoned: () => this.executions.clear(),
      failed: (execution, error) => {
        const failed = this.executions.get(execution);
        // The first error says all; a later one for the same run adds nothing.
        this.executions.delete(execution);
        if (failed !== undefined) {
          void this.explain(failed, error, this.newest());
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

  /** Says why memory ran out, if it did; what that takes is loaded with the first error. */
  private async explain(
    { cellId, kernelId }: Failed,
    kernelError: KernelError,
    before: Sample | null,
  ): Promise<void> {
    const { describeOom, fullerSample, oomErrorOf, OomNote } = await import('@gpumon/page/oom');
    const error = oomErrorOf(kernelError);
    const runsAgain = [...this.executions.values()].some((other) => other.cellId === cellId);
    if (error === null || runsAgain || this.isDisposed) {
      return;
    }
    adoptStyle(oomStyle);
    const { notebooks, notes } = this;
    const show = (sample: Sample | null): void => {
      const { inventory } = this.feed.store;
      const description = describeOom(error, {
        inventory,
        sample,
        kernelId,
        pathOf: notebooks.pathOf,
      });
      if (description !== null) {
        notes.attach(cellId, () => new OomNote(notebooks))?.update(description);
      }
    };
    show(before);
    this.fresh.set(cellId, (sample) => show(fullerSample(before, sample, kernelId)));
  }
}
