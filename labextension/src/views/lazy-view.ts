/** A widget whose view is loaded when it is first visible, and is inactive while it is hidden. */

import type { Mounted, MountOptions, ViewOptions } from '@gpumon/page';
import type { Feed } from '@gpumon/page/feed';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import type { LabNotebooks } from '../notebook/notebooks';
import type { Connection } from '../server/connection';
import type { Settings } from '../settings';

export interface LazyViewOptions {
  connection: Connection;
  notebooks: () => Promise<LabNotebooks>;
  trans: TranslationBundle;
}

export abstract class LazyView<View extends Mounted> extends Widget {
  /** `null` until it has been seen. */
  protected view: View | null = null;
  protected settings: Settings | null = null;
  private loading = false;
  private waiting: ((view: View) => void)[] = [];

  constructor(
    id: string,
    private readonly heading: string,
    private readonly parts: LazyViewOptions,
  ) {
    super();
    this.id = id;
    this.node.style.background = 'var(--jp-layout-color1)';
  }

  apply(settings: Settings): void {
    this.settings = settings;
    this.view?.setInterval(settings.interval * 1000);
    this.view?.invalidate();
  }

  /** JupyterLab has another theme now. */
  themeChanged(): void {
    this.view?.themeChanged();
  }

  /** Does something with the view, now or as soon as it is there. */
  protected withView(use: (view: View) => void): void {
    if (this.view === null) {
      this.waiting.push(use);
    } else {
      use(this.view);
    }
  }

  override dispose(): void {
    this.view?.dispose();
    this.view = null;
    super.dispose();
  }

  /** What is shown. */
  protected feed(): Promise<Feed> {
    return this.parts.connection.feed();
  }

  protected abstract mount(
    module: typeof import('./view'),
    options: MountOptions & ViewOptions,
  ): View;

  /** Whoever asks for it by a command goes on by keys; what is still being loaded gets the focus then. */
  protected override onActivateRequest(): void {
    this.withView(() =>
      this.node.querySelector<HTMLElement>('[tabindex]')?.focus({ preventScroll: true }),
    );
  }

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
    const { notebooks, trans } = this.parts;
    const feeding = this.feed();
    // The server is asked while the view is still being loaded.
    const connecting = feeding.then((feed) => feed.subscribe(() => undefined));
    try {
      const [feed, own, module] = await Promise.all([
        feeding,
        notebooks(),
        import('./view'),
        connecting,
      ]);
      if (!this.isDisposed) {
        // It may have said that it could not be loaded.
        this.node.replaceChildren();
        this.view = this.mount(module, {
          feed,
          notebooks: own,
          title: this.heading,
          connectingMessage: trans.__(
            'Jupyter is starting gpumon. This takes a few seconds the first time.',
          ),
          ...(this.settings !== null && { interval_ms: this.settings.interval * 1000 }),
        });
        this.view.setVisible(this.isVisible);
        const view = this.view;
        this.waiting.splice(0).forEach((use) => use(view));
      }
    } catch (error) {
      // After an update the server no longer has the files of the version that this page began with.
      console.error('gpumon: a part of it cannot be loaded', error);
      const message = document.createElement('p');
      message.textContent = this.parts.trans.__(
        'This part of gpumon cannot be loaded. Reload the page.',
      );
      message.role = 'alert';
      message.style.margin = '12px';
      this.node.replaceChildren(message);
    } finally {
      this.loading = false;
      connecting.then(
        ({ unsubscribe }) => unsubscribe(),
        () => undefined,
      );
    }
  }
}
