import type { MountHandle, MountOptions, ViewOptions } from '@gpumon/page';
import type { Feed } from '@gpumon/page/feed';
import { Widget } from '@lumino/widgets';

import type { ExtensionParts } from '../parts';
import type { Settings } from '../settings';

/** The methods of a mounted view that a widget calls. */
type MountedView = Omit<MountHandle, 'setInterval'> & Partial<MountHandle>;

/**
 * A widget that loads its view when it first becomes visible. The view is inactive while the widget
 * is hidden.
 */
export abstract class LazyView<View extends MountedView = MountedView> extends Widget {
  /** Resolves when the view is mounted. */
  protected readonly mounted: Promise<View>;
  protected settings: Settings | null = null;
  protected view: View | null = null;
  private isLoading = false;
  private resolve: (view: View) => void = () => undefined;

  constructor(
    id: string,
    protected readonly options: ExtensionParts,
  ) {
    super();
    this.id = id;
    this.node.style.background = 'var(--jp-layout-color1)';
    this.mounted = new Promise((resolve) => (this.resolve = resolve));
  }

  apply(settings: Settings): void {
    this.settings = settings;
    this.view?.setInterval?.(settings.interval * 1000);
    this.view?.invalidate();
  }

  /** Called when the JupyterLab theme has changed. */
  themeChanged(): void {
    this.view?.themeChanged();
  }

  override dispose(): void {
    this.view?.dispose();
    this.view = null;
    super.dispose();
  }

  /** Loads the view and mounts it, unless the widget has been disposed of meanwhile. */
  protected abstract load(): Promise<View | null>;

  /** Focuses the view, so that its keyboard shortcuts work. */
  protected override onActivateRequest(): void {
    void this.mounted.then(() =>
      this.node.querySelector<HTMLElement>('[tabindex]')?.focus({ preventScroll: true }),
    );
  }

  protected override onAfterAttach(): void {
    if (this.isVisible) {
      void this.showView();
    }
  }

  protected override onAfterShow(): void {
    void this.showView();
  }

  protected override onBeforeHide(): void {
    this.view?.setVisible(false);
  }

  private async showView(): Promise<void> {
    this.view?.setVisible(true);
    if (this.view !== null || this.isLoading) {
      return;
    }
    this.isLoading = true;
    this.node.replaceChildren();
    try {
      this.view = await this.load();
      if (this.view !== null) {
        this.view.setVisible(this.isVisible);
        this.resolve(this.view);
      }
    } catch (error) {
      // Loading fails after an update of gpumon, because this page still refers to files that the
      // server no longer has.
      console.error('gpumon: a part of it cannot be loaded', error);
      const message = document.createElement('p');
      const { trans } = this.options;
      message.textContent = trans.__('This part of gpumon cannot be loaded. Reload the page.');
      message.role = 'alert';
      message.style.margin = '12px';
      this.node.replaceChildren(message);
    } finally {
      this.isLoading = false;
    }
  }
}

/** A view of the GPUs of a feed. */
export abstract class FeedView<View extends MountHandle = MountHandle> extends LazyView<View> {
  constructor(
    id: string,
    private readonly heading: string,
    options: ExtensionParts,
  ) {
    super(id, options);
  }

  protected openFeed(): Promise<Feed> {
    return this.options.connection.feed();
  }

  protected abstract mount(
    module: typeof import('./view'),
    options: MountOptions & ViewOptions,
  ): View;

  /** Replaces the view with a new view of the same feed. */
  protected remount: () => void = () => undefined;

  protected override async load(): Promise<View | null> {
    const { notebooks, trans } = this.options;
    const feeding = this.openFeed();
    // This subscription makes the feed connect to the server while the view is still loading.
    const connecting = feeding.then((feed) => feed.subscribe(() => undefined));
    try {
      const loading = Promise.all([feeding, notebooks(), import('./view'), connecting]);
      const [feed, own, module] = await loading;
      if (this.isDisposed) {
        return null;
      }
      const make = (): View =>
        this.mount(module, {
          feed,
          notebooks: own,
          title: this.heading,
          connectingMessage: trans.__(
            'Jupyter is starting gpumon. This takes a few seconds the first time.',
          ),
          ...(this.settings !== null && { interval_ms: this.settings.interval * 1000 }),
        });
      this.remount = () => {
        // This subscription keeps the connection and the stored data while the view is replaced.
        const { unsubscribe } = feed.subscribe(() => undefined);
        this.view?.dispose();
        this.view = make();
        this.view.setVisible(this.isVisible);
        unsubscribe();
      };
      return make();
    } finally {
      connecting.then(
        ({ unsubscribe }) => unsubscribe(),
        () => undefined,
      );
    }
  }
}
