/** A widget whose view is loaded when it is first visible, and is inactive while it is hidden. */

import type { Mounted } from '@gpumon/page';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

export abstract class LazyView<View extends Mounted> extends Widget {
  /** `null` until it has been seen. */
  protected view: View | null = null;
  private loading = false;

  constructor(protected readonly trans: TranslationBundle) {
    super();
  }

  /** JupyterLab has another theme now. */
  themeChanged(): void {
    this.view?.themeChanged();
  }

  override dispose(): void {
    this.view?.dispose();
    this.view = null;
    super.dispose();
  }

  /** Loads what the view takes; what it gives then puts it into the widget. */
  protected abstract load(): Promise<() => View>;

  protected override onAfterAttach(): void {
    if (this.isVisible) {
      void this.reveal();
    }
  }

  protected override onAfterShow(): void {
    void this.reveal();
  }

  protected override onBeforeHide(): void {
    this.view?.setVisible(false);
  }

  private async reveal(): Promise<void> {
    if (this.view !== null || this.loading) {
      this.view?.setVisible(true);
      return;
    }
    this.loading = true;
    try {
      const mount = await this.load();
      if (!this.isDisposed) {
        // It may have said that it could not be loaded.
        this.node.replaceChildren();
        const view = mount();
        view.setVisible(this.isVisible);
        this.view = view;
      }
    } catch (error) {
      // After an update the server no longer has the files of the version that this page began with.
      console.error('gpumon: a part of it cannot be loaded', error);
      const message = document.createElement('p');
      message.textContent = this.trans.__('This part of gpumon cannot be loaded. Reload the page.');
      message.role = 'alert';
      message.style.margin = '12px';
      this.node.replaceChildren(message);
    } finally {
      this.loading = false;
    }
  }
}
