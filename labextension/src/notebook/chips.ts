/** What notebooks have of the GPUs now: in their toolbars, and of the present one in JupyterLab's status bar. */

import { Chip } from '@gpumon/page/cells';
import chipStyle from '@gpumon/page/chip.css?inline';
import type { Feed } from '@gpumon/page/feed';
import { adoptStyle } from '@gpumon/page/style';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Widget } from '@lumino/widgets';

import { addToToolbar, type NotebookPanel } from './notebook-panel';
import { PageSubscription } from '../page-subscription';

class ChipWidget extends Widget {
  private readonly chip: Chip;
  private readonly subscription: PageSubscription;

  constructor(
    private readonly feed: Feed,
    private readonly notebook: () => NotebookPanel | null,
    onClick: () => void,
  ) {
    adoptStyle(chipStyle);
    const chip = new Chip(onClick);
    super({ node: document.createElement('span') });
    this.chip = chip;
    this.node.append(chip.element);
    this.subscription = new PageSubscription(feed, (frame) => {
      // A connection that has ended tells nothing about now.
      if (frame === null || frame.type === 'sample' || frame.type === 'hello') {
        this.refresh();
      }
    });
  }

  refresh(): void {
    const { phase, sample } = this.feed.store;
    const kernel = this.notebook()?.sessionContext.session?.kernel ?? null;
    this.chip.update(phase.phase === 'open' ? sample : null, kernel?.id ?? null);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.subscription.dispose();
      super.dispose();
    }
  }
}

export function addToolbarChip(panel: NotebookPanel, feed: Feed, onClick: () => void): Widget {
  const chip = new ChipWidget(feed, () => panel, onClick);
  addToToolbar(panel, 'gpumon', chip);
  return chip;
}

/** A chip for the status bar, about the notebook that is in front. */
export class StatusChip extends ChipWidget {
  constructor(
    private readonly shell: JupyterFrontEnd.IShell,
    feed: Feed,
    notebooks: ReadonlySet<NotebookPanel>,
    onClick: () => void,
  ) {
    super(
      feed,
      () => [...notebooks].find((panel) => panel === shell.currentWidget) ?? null,
      onClick,
    );
    shell.currentChanged?.connect(this.onCurrent);
  }

  override dispose(): void {
    this.shell.currentChanged?.disconnect(this.onCurrent);
    super.dispose();
  }

  private readonly onCurrent = (): void => this.refresh();
}
