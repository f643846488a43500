/** A section of JupyterLab's list of what runs: the notebooks of this server that hold GPU memory, and how much. */

import { DASH, memorySize, shareOf } from '@gpumon/page/cells';
import type { Feed, Subscription } from '@gpumon/page/feed';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { PathExt } from '@jupyterlab/coreutils';
import type { IRunningSessions } from '@jupyterlab/running';
import type { Session } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { notebookIcon } from '@jupyterlab/ui-components';
import { Signal } from '@lumino/signaling';

import type { Connection } from '../server/connection';

/** The side bar's own part, in JupyterLab and in Notebook 7. */
const SIDE_BAR = '.jp-RunningSessions';

interface Holder {
  session: Session.IModel;
  detail: string;
  title: string;
  bytes: number;
}

/** Asks for samples only while the list can be seen: JupyterLab reads it whenever it is shown, and after each change. */
export class GpuMemoryList implements IRunningSessions.IManager {
  readonly runningChanged = new Signal<this, undefined>(this);
  readonly name: string;
  readonly shutdownLabel: string;
  readonly shutdownAllConfirmationText: string;
  readonly supportsMultipleViews = false;
  private holders: Holder[] = [];
  private feed: Promise<Feed> | null = null;
  private subscription: Subscription | null = null;

  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly connection: Connection,
    private readonly trans: TranslationBundle,
  ) {
    this.name = trans.__('GPU Memory');
    this.shutdownLabel = trans.__('Shut Down Kernel');
    this.shutdownAllConfirmationText = trans.__(
      'Shut down the kernels of all notebooks that hold GPU memory? All their variables are lost.',
    );
    document.addEventListener('visibilitychange', () => this.updateVisibility());
  }

  running(): IRunningSessions.IRunningItem[] {
    // It is asked just before it is shown.
    setTimeout(() => this.updateVisibility());
    return this.holders.map(({ session, detail, title }) => ({
      icon: () => notebookIcon,
      label: () => nameOf(session),
      labelTitle: () => title,
      detail: () => detail,
      open: () => {
        void this.app.commands.execute('docmanager:open', { path: session.path });
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
    void this.app.serviceManager.sessions.shutdown(session.id);
  }

  private updateVisibility(): void {
    const seen = !document.hidden && (document.querySelector(SIDE_BAR)?.getClientRects().length ?? 0) > 0;
    this.subscription?.update({ active: seen });
    if (seen && this.feed === null) {
      this.feed = this.connection.feed();
      void this.feed.then((feed) => {
        this.subscription = feed.subscribe(() => this.update(feed));
        this.updateVisibility();
      });
    }
  }

  private update({ store }: Feed): void {
    const sample = store.phase.phase === 'open' ? store.sample : null;
    const holders: Holder[] = [];
    for (const session of sample === null ? [] : this.app.serviceManager.sessions.running()) {
      const share = sample === null || !session.kernel ? null : shareOf(sample, session.kernel.id);
      if (share !== null && share.gpus.length > 0) {
        const detail = share.bytes === null ? DASH : memorySize(share.bytes);
        const title = this.trans.__('%1 holds %2 of GPU %3', session.path, detail, share.gpus.join(', '));
        holders.push({ session, detail, title, bytes: share.bytes ?? 0 });
      }
    }
    holders.sort((a, b) => b.bytes - a.bytes);
    const changed = holders.map(({ title }) => title).join('\n') !== this.holders.map(({ title }) => title).join('\n');
    this.holders = holders;
    if (changed) {
      this.runningChanged.emit(undefined);
    } else {
      this.updateVisibility();
    }
  }
}

function nameOf(session: Session.IModel): string {
  return PathExt.basename(session.path) || session.name;
}
