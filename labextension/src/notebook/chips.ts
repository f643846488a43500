import { Chip } from '@gpumon/page/cells';
import notebookStyle from '@gpumon/page/notebook.css?inline';
import type { Feed } from '@gpumon/page/feed';
import { adoptStyle } from '@gpumon/page/dom';
import { Widget } from '@lumino/widgets';

import { PageSubscription } from '../page-subscription';
import type { NotebookPanel } from './notebook-panel';
import { newestSample } from './notebooks';

/**
 * A chip that shows a notebook's GPU use: in a toolbar, that of the toolbar's notebook; in the
 * status bar, that of the active notebook.
 */
export class ChipWidget extends Widget {
  private readonly chip: Chip;

  constructor(
    private readonly feed: Feed,
    private readonly notebook: () => NotebookPanel | null,
    onClick: () => void,
  ) {
    adoptStyle(notebookStyle);
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
