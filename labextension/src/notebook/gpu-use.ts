/**
 * The GPU use of kernels in JupyterLab's own interface: indicators in the toolbars and the status
 * bar, and a section in the list of running items.
 */

import {
  Chip,
  computeKernelShare,
  DASH,
  formatMemorySize,
  isConsolePath,
  notebookNames,
} from '@gpumon/page/cells';
import notebookStyle from '@gpumon/page/notebook.css?inline';
import type { Feed, Subscription } from '@gpumon/page/feed';
import { addStyleSheetOnce } from '@gpumon/page/dom';
import type { IRunningSessions } from '@jupyterlab/running';
import { consoleIcon, notebookIcon } from '@jupyterlab/ui-components';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { PageSubscription } from '../page-subscription';
import type { ExtensionParts } from '../parts';
import type { NotebookPanel } from './notebook-panel';
import { describeKernelMemory, newestSample } from './notebooks';

/** The sidebar section with the list of running items, in JupyterLab and Notebook 7. */
const SECTION_SELECTOR = '.jp-RunningSessions';

/**
 * An indicator of a notebook's GPU use. An indicator in a notebook's toolbar is about this
 * notebook; the one in the status bar is about the active notebook.
 */
export class ChipWidget extends Widget {
  private readonly chip: Chip;

  constructor(
    private readonly feed: Feed,
    private readonly notebook: () => NotebookPanel | null,
    onClick: () => void,
  ) {
    addStyleSheetOnce(notebookStyle);
    super({ node: document.createElement('span') });
    this.chip = new Chip(onClick);
    this.node.append(this.chip.element);
    const subscription = new PageSubscription(feed, (frame) => {
      // An update without a frame means that the connection was lost, so the GPU use is unknown.
      if (frame === null || frame.type === 'sample' || frame.type === 'hello') {
        this.refresh();
      }
    });
    this.disposed.connect(() => subscription.dispose());
  }

  readonly refresh = (): void => {
    const kernel = this.notebook()?.sessionContext.session?.kernel;
    this.chip.update(newestSample(this.feed), kernel?.id ?? null);
  };
}

type Texts = 'label' | 'labelTitle';
type Item = Omit<IRunningSessions.IRunningItem, Texts> & Record<Texts, () => string>;

/**
 * A section of JupyterLab's list of running items. It lists the kernels of this server that use GPU
 * memory. It requests samples only while the list is visible. JupyterLab reads the section's items
 * whenever it shows the list, and after each change.
 */
export class GpuMemoryList implements IRunningSessions.IManager {
  readonly runningChanged = new Signal<this, undefined>(this);
  readonly name: string;
  readonly shutdownLabel: string;
  readonly supportsMultipleViews = false;
  private items: Item[] = [];
  private feed: Promise<Feed> | null = null;
  private subscription: Subscription | null = null;

  constructor(private readonly options: ExtensionParts) {
    const { trans } = options;
    this.name = trans.__('GPU Memory');
    this.shutdownLabel = trans.__('Shut Down Kernel');
    document.addEventListener('visibilitychange', () => this.refreshRunning());
  }

  /** JupyterLab shows this text before it calls `shutdownAll`. */
  get shutdownAllConfirmationText(): string {
    const holdings = this.items.map(({ labelTitle }) => labelTitle()).join(' ');
    const { trans } = this.options;
    return trans.__('Shut down these kernels? %1 All variables are lost.', holdings);
  }

  running(): IRunningSessions.IRunningItem[] {
    // JupyterLab reads the items just before it shows the list, so the list's visibility is checked
    // only after JupyterLab has shown it.
    setTimeout(() => this.refreshRunning());
    return this.items;
  }

  /** Requests samples if the list is visible. */
  refreshRunning(): void {
    const seen =
      !document.hidden &&
      (document.querySelector(SECTION_SELECTOR)?.getClientRects().length ?? 0) > 0;
    this.subscription?.update({ active: seen });
    if (seen && this.feed === null) {
      this.feed = this.options.connection.feed();
      void this.feed.then((feed) => {
        this.subscription = feed.subscribe(() => this.update(feed));
        this.refreshRunning();
      });
    }
  }

  /** Shuts down all kernels of the list. JupyterLab has already asked for confirmation. */
  shutdownAll(): void {
    this.items.forEach(({ shutdown }) => shutdown?.());
  }

  private update(feed: Feed): void {
    const { sessions } = this.options.app.serviceManager;
    const sample = newestSample(feed);
    const running = sample === null ? [] : [...sessions.running()];
    const names = notebookNames(running.map(({ path }) => path));
    const found = running.flatMap((session) => {
      const { id, path, kernel } = session;
      const kernelId = kernel?.id;
      if (sample === null || kernelId === undefined) {
        return [];
      }
      const { gpus, bytes } = computeKernelShare(sample, kernelId);
      const name = (names.get(path) ?? '') || session.name;
      const title = describeKernelMemory(this.options.trans, path, kernelId, sample);
      const item: Item = {
        icon: () => (isConsolePath(path) ? consoleIcon : notebookIcon),
        label: () => name,
        labelTitle: () => title,
        detail: () => (bytes === null ? DASH : formatMemorySize(bytes)),
        open: () => void this.options.notebooks().then((notebooks) => notebooks.open(kernelId)),
        shutdown: () => void sessions.shutdown(id),
      };
      return gpus.length === 0 ? [] : [{ item, bytes: bytes ?? 0 }];
    });
    const items = found.sort((a, b) => b.bytes - a.bytes).map(({ item }) => item);
    const textOf = (all: readonly Item[]): string =>
      all.map(({ label, labelTitle }) => `${label()}\n${labelTitle()}`).join('\n');
    const isChanged = textOf(items) !== textOf(this.items);
    this.items = items;
    if (isChanged) {
      this.runningChanged.emit(undefined);
    } else {
      this.refreshRunning();
    }
  }
}
