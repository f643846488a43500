/**
 * The memory warnings, whose code is loaded when they are enabled. Notifications warn before the
 * memory of a GPU is full, and offer actions on the notebooks that use the memory. Explanations
 * appear below cells that ran out of memory.
 */

import type { Feed } from '@gpumon/page/feed';
import { MemoryWarnings, type MemoryWarning } from '@gpumon/page/memory-warning';
import type { KernelError, OomNote, Sample } from '@gpumon/page/oom';
import notebookStyle from '@gpumon/page/notebook.css?inline';
import { addStyleSheetOnce } from '@gpumon/page/dom';
import { Notification } from '@jupyterlab/apputils';
import type { IDisposable } from '@lumino/disposable';

import { PageSubscription } from '../page-subscription';
import { ExecutionTracker, type StartedExecution } from './executions';
import { CellAttachments, type NotebookPanel } from './notebook-panel';
import type { LabNotebooks } from './notebooks';

/** The minimum time between updates. More frequent updates do not improve the forecast. */
const UPDATE_MS = 900;
/**
 * The interval at which an open notification is updated. The forecast changes with every sample,
 * but a screen reader announces each change of the text. Therefore the text is updated less often.
 */
const RENEW_MS = 10_000;
/**
 * After the user closes a notification, no new notification about the same GPU is shown for this
 * long.
 */
const QUIET_MS = 5 * 60_000;
/**
 * The maximum age of the sample that describes the GPU just before a cell failed. If the newest
 * sample is older, it is not used.
 */
const FRESH_MS = 5000;

interface OpenNotification {
  id: string;
  text: string;
  urgent: boolean;
  updated_ms: number;
  /** Whether the toast has been on the screen, where a user can close it. */
  seen: boolean;
}

/**
 * Shows one notification for each GPU while its memory is running out. It is inactive while the
 * page is hidden.
 */
export class MemoryWatch implements IDisposable {
  isDisposed = false;
  private readonly warnings = new MemoryWarnings();
  private readonly shown = new Map<number, OpenNotification>();
  private readonly quiet_until_ms = new Map<number, number>();
  private readonly subscription: PageSubscription;
  private updated_ms = 0;

  constructor(
    private readonly feed: Feed,
    private readonly notebooks: LabNotebooks,
  ) {
    this.subscription = new PageSubscription(feed, (frame) => {
      if (
        frame?.type === 'sample' &&
        !document.hidden &&
        Date.now() - this.updated_ms > UPDATE_MS
      ) {
        this.updated_ms = Date.now();
        this.update();
      }
    });
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.isDisposed = true;
    this.subscription.dispose();
    for (const { id } of this.shown.values()) {
      Notification.dismiss(id);
    }
  }

  private update(): void {
    const warnings = this.warnings.update(this.feed.store, this.notebooks.pathOf);
    for (const [gpu, { id }] of this.shown) {
      if (!warnings.some((warning) => warning.gpu === gpu)) {
        Notification.dismiss(id);
        this.shown.delete(gpu);
      }
    }
    for (const warning of warnings) {
      const shown = this.shown.get(warning.gpu);
      if (shown !== undefined) {
        this.updateNotification(warning, shown);
      } else if (Date.now() >= (this.quiet_until_ms.get(warning.gpu) ?? 0)) {
        this.notify(warning);
      }
    }
  }

  private notify({ gpu, text, urgent, kernelId }: MemoryWarning): void {
    const id = Notification.emit(text, urgent ? 'error' : 'warning', {
      autoClose: false,
      actions: this.notificationActions(kernelId),
    });
    this.shown.set(gpu, { id, text, urgent, updated_ms: Date.now(), seen: false });
  }

  private updateNotification(
    { gpu, text, urgent, kernelId }: MemoryWarning,
    shown: OpenNotification,
  ): void {
    const now_ms = Date.now();
    const onScreen = document.getElementById(shown.id) !== null;
    const closed = !Notification.manager.has(shown.id) || (shown.seen && !onScreen);
    shown.seen ||= onScreen;
    if (closed) {
      this.quiet_until_ms.set(gpu, now_ms + QUIET_MS);
    }
    if (text === shown.text || (urgent === shown.urgent && now_ms - shown.updated_ms < RENEW_MS)) {
      return;
    }
    Object.assign(shown, { text, urgent, updated_ms: now_ms });
    // A closed notification is updated silently in JupyterLab's list of notifications, if the list
    // still contains it.
    Notification.update({
      id: shown.id,
      message: text,
      type: urgent ? 'error' : 'warning',
      autoClose: closed ? 0 : false,
      actions: this.notificationActions(kernelId),
    });
  }

  /**
   * Returns the notification's actions. An action does not close the notification, which stays open
   * as long as its warning applies.
   */
  private notificationActions(kernelId: string): Notification.IAction[] {
    return this.notebooks.actions(kernelId).map(({ label, caption, run }) => ({
      label,
      caption,
      callback: (event) => {
        event.preventDefault();
        run();
      },
    }));
  }
}

/** If a cell runs out of GPU memory, shows below the cell which processes use the memory. */
export class CellFailures {
  private isDisposed = false;
  private readonly executions = new Map<string, StartedExecution>();
  private readonly notes: CellAttachments<OomNote>;
  /** For each cell ID, a function that updates the note below the cell with the next sample. */
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
        // If the same run reports another error later, that error is ignored.
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
    const { describeOom, selectSampleWithMoreMemory, parseOomError, OomNote } =
      await import('@gpumon/page/oom');
    const error = parseOomError(kernelError);
    const runsAgain = [...this.executions.values()].some((other) => other.cellId === cellId);
    if (error === null || runsAgain || this.isDisposed) {
      return;
    }
    addStyleSheetOnce(notebookStyle);
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
    this.updates.set(cellId, (sample) =>
      show(selectSampleWithMoreMemory(before, sample, kernelId)),
    );
  }
}
