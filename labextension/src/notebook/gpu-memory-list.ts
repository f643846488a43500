/**
 * A section of JupyterLab's list of running items: this server's kernels that hold GPU memory, and
 * how much.
 */

import { DASH, isConsolePath, memorySize, notebookNames, shareOf } from '@gpumon/page/cells';
import type { Feed, Subscription } from '@gpumon/page/feed';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IRunningSessions } from '@jupyterlab/running';
import type { Session } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { consoleIcon, notebookIcon } from '@jupyterlab/ui-components';
import { Signal } from '@lumino/signaling';

import type { Connection } from '../server/connection';
import { describeHolding, newestSample } from './describe-holding';
import type { LabNotebooks } from './notebooks';

/** The side bar's own part, in JupyterLab and in Notebook 7. */
const SIDE_BAR = '.jp-RunningSessions';

interface Holder {
  session: Session.IModel;
  kernelId: string;
  name: string;
  detail: string;
  title: string;
  bytes: number;
}

/** Asks for samples only while the list can be seen: JupyterLab reads it whenever it is shown, and after each change. */
export interface GpuMemoryListOptions {
  app: JupyterFrontEnd;
  connection: Connection;
  notebooks: () => Promise<LabNotebooks>;
  trans: TranslationBundle;
}

export class GpuMemoryList implements IRunningSessions.IManager {
  readonly runningChanged = new Signal<this, undefined>(this);
  readonly name: string;
  readonly shutdownLabel: string;
  readonly supportsMultipleViews = false;
  private holders: Holder[] = [];
  private feed: Promise<Feed> | null = null;
  private subscription: Subscription | null = null;

  constructor(private readonly options: GpuMemoryListOptions) {
    const { trans } = options;
    this.name = trans.__('GPU Memory');
    this.shutdownLabel = trans.__('Shut Down Kernel');
    document.addEventListener('visibilitychange', () => this.updateVisibility());
  }

  /** JupyterLab shows this text before it calls `shutdownAll`. */
  get shutdownAllConfirmationText(): string {
    const holdings = this.holders.map(({ title }) => title).join(' ');
    return this.options.trans.__('Shut down these kernels? %1 All variables are lost.', holdings);
  }

  running(): IRunningSessions.IRunningItem[] {
    // It is asked just before it is shown.
    setTimeout(() => this.updateVisibility());
    return this.holders.map(({ session, kernelId, name, detail, title }) => ({
      icon: () => (isConsolePath(session.path) ? consoleIcon : notebookIcon),
      label: () => name,
      labelTitle: () => title,
      detail: () => detail,
      open: () => {
        void this.options.notebooks().then((notebooks) => notebooks.open(kernelId));
      },
      shutdown: () => this.shutDown(session),
    }));
  }

  refreshRunning(): void {
    this.updateVisibility();
  }

  /** JupyterLab has asked before. */
  shutdownAll(): void {
    for (const { session } of this.holders) {
      this.shutDown(session);
    }
  }

  private shutDown(session: Session.IModel): void {
    void this.options.app.serviceManager.sessions.shutdown(session.id);
  }

  private updateVisibility(): void {
    const seen =
      !document.hidden && (document.querySelector(SIDE_BAR)?.getClientRects().length ?? 0) > 0;
    this.subscription?.update({ active: seen });
    if (seen && this.feed === null) {
      this.feed = this.options.connection.feed();
      void this.feed.then((feed) => {
        this.subscription = feed.subscribe(() => this.update(feed));
        this.updateVisibility();
      });
    }
  }

  private update(feed: Feed): void {
    const { app, trans } = this.options;
    const sample = newestSample(feed);
    const sessions = sample === null ? [] : [...app.serviceManager.sessions.running()];
    const names = notebookNames(sessions.map(({ path }) => path));
    const holders = sessions.flatMap((session): Holder[] => {
      const kernelId = session.kernel?.id;
      const share = sample === null || kernelId === undefined ? null : shareOf(sample, kernelId);
      if (share === null || kernelId === undefined || share.gpus.length === 0) {
        return [];
      }
      const detail = share.bytes === null ? DASH : memorySize(share.bytes);
      const title = describeHolding(trans, session.path, kernelId, sample);
      const name = (names.get(session.path) ?? '') || session.name;
      return [{ session, kernelId, name, detail, title, bytes: share.bytes ?? 0 }];
    });
    holders.sort((a, b) => b.bytes - a.bytes);
    const textOf = (all: readonly Holder[]): string =>
      all.map(({ name, title }) => `${name}\n${title}`).join('\n');
    const changed = textOf(holders) !== textOf(this.holders);
    this.holders = holders;
    if (changed) {
      this.runningChanged.emit(undefined);
    } else {
      this.updateVisibility();
    }
  }
}
