import type { Feed } from '@gpumon/page/feed';
import type { KernelError, OomNote, Sample } from '@gpumon/page/oom';
import notebookStyle from '@gpumon/page/notebook.css?inline';
import { adoptStyle } from '@gpumon/page/dom';

import { PageSubscription } from '../page-subscription';
import { CellAttachments } from './below-cells';
import { ExecutionTracker, type StartedExecution } from './executions';
import type { NotebookPanel } from './notebook-panel';
import type { LabNotebooks } from './notebooks';

/** The maximum age of a sample that still describes the failure. */
const FRESH_MS = 5000;

/** Explains below a cell that ran out of GPU memory which processes use the memory. */
export class CellFailures {
  private isDisposed = false;
  private readonly executions = new Map<string, StartedExecution>();
  private readonly notes: CellAttachments<OomNote>;
  /** By cell ID, the functions that update the notes below cells with the next sample. */
  private readonly updates = new Map<string, (sample: Sample) => void>();
  private readonly subscription: PageSubscription;
  private readonly tracker: ExecutionTracker;

  constructor(
    panel: NotebookPanel,
    private readonly feed: Feed,
    private readonly notebooks: LabNotebooks,
  ) {
    // The note is inserted next to the error, before the line with the cost.
    this.notes = new CellAttachments(panel, '.gpumon-cell-line');
    this.subscription = new PageSubscription(feed, (frame) => {
      if (frame?.type === 'sample') {
        this.updates.forEach((update) => update(frame));
        this.updates.clear();
      }
    });
    const { executions } = this;
    this.tracker = new ExecutionTracker(panel.sessionContext, {
      started: (id, execution) => {
        executions.set(id, execution);
        this.updates.delete(execution.cellId);
        this.notes.remove(execution.cellId);
      },
      ended: (id) => executions.delete(id),
      abandoned: () => executions.clear(),
      failed: (id, error) => {
        const failed = executions.get(id);
        // A later error of the same run is ignored.
        executions.delete(id);
        if (failed !== undefined) {
          void this.explain(failed, error);
        }
      },
    });
  }

  dispose(): void {
    this.isDisposed = true;
    this.tracker.dispose();
    this.subscription.dispose();
    this.notes.dispose();
  }

  /** Adds a note if memory ran out. The code for notes is loaded with the first error. */
  private async explain(
    { cellId, kernelId }: StartedExecution,
    kernelError: KernelError,
  ): Promise<void> {
    const { sample, clock } = this.feed.store;
    const before = sample !== null && clock.now() - sample.at_ms < FRESH_MS ? sample : null;
    const { describeOom, selectFullerSample, parseOomError, OomNote } =
      await import('@gpumon/page/oom');
    const error = parseOomError(kernelError);
    const runsAgain = [...this.executions.values()].some((other) => other.cellId === cellId);
    if (error === null || runsAgain || this.isDisposed) {
      return;
    }
    adoptStyle(notebookStyle);
    const { notebooks, notes } = this;
    const { pathOf } = notebooks;
    const show = (sample: Sample | null): void => {
      const { inventory } = this.feed.store;
      const description = describeOom(error, { inventory, sample, kernelId, pathOf });
      if (description !== null) {
        notes.attach(cellId, () => new OomNote(notebooks))?.update(description);
      }
    };
    show(before);
    this.updates.set(cellId, (sample) => show(selectFullerSample(before, sample, kernelId)));
  }
}
