/** The fleet as a tab of the main area; nothing is asked for until it is seen. */

import { mountFleet, nodePath, type MountedFleet } from '@gpumon/page/fleet';
import { adoptStyle } from '@gpumon/page/style';
import viewStyle from '@gpumon/page/view.css?inline';
import { URLExt } from '@jupyterlab/coreutils';
import type { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { diagnose, requestOf } from '../server/stream';
import type { FleetsOptions, FleetWidget } from './fleets';

export interface FleetPanelOptions extends FleetsOptions {
  /** Something else is shown. */
  onAddress: () => void;
  onOpenNode: (node: string) => void;
}

export class FleetPanel extends Widget implements FleetWidget {
  readonly machine = null;
  private view: MountedFleet | null = null;
  private isMounting = false;

  constructor(
    public address: string,
    private readonly options: FleetPanelOptions,
  ) {
    super();
    adoptStyle(viewStyle);
    this.id = 'gpumon-fleet';
    this.node.style.background = 'var(--jp-layout-color1)';
    this.node.style.overflowY = 'auto';
  }

  /** Shows what another address says. */
  goTo(address: string): void {
    this.address = address;
    this.view?.show(address);
  }

  apply(): void {
    this.view?.invalidate();
  }

  themeChanged(): void {
    this.view?.themeChanged();
  }

  override dispose(): void {
    this.view?.dispose();
    this.view = null;
    super.dispose();
  }

  /** Whoever asks for it by a command goes on by keys. */
  protected override onActivateRequest(): void {
    this.node.querySelector<HTMLElement>('[tabindex]')?.focus({ preventScroll: true });
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
    if (this.view !== null || this.isMounting) {
      this.view?.setVisible(true);
      return;
    }
    this.isMounting = true;
    const { app, connection, trans, onAddress, onOpenNode } = this.options;
    const settings = app.serviceManager.serverSettings;
    // Texts and units are those of the connection.
    await connection.feed();
    this.isMounting = false;
    if (this.isDisposed) {
      return;
    }
    this.view = mountFleet(this.node, {
      title: trans.__('GPU Fleet'),
      request: explained(settings, trans),
      opener: {
        hrefOf: (node) => URLExt.join(settings.baseUrl, 'gpumon', nodePath(node) ?? ''),
        open: onOpenNode,
      },
      address: this.address,
      onAddress: (address) => {
        this.address = address;
        onAddress();
      },
    });
    this.view.setVisible(this.isVisible);
    if (this.node.contains(document.activeElement) || document.activeElement === document.body) {
      this.onActivateRequest();
    }
  }
}

/** Asks the server; what Jupyter answers in its place is a page, and is explained. */
function explained(
  settings: ServerConnection.ISettings,
  trans: TranslationBundle,
): (path: string, init?: RequestInit) => Promise<Response> {
  const request = requestOf(settings);
  return async (path, init) => {
    const response = await request(path, init);
    const isPage = response.headers.get('content-type')?.includes('html') === true;
    const why = isPage ? await diagnose(settings, trans) : null;
    return why === null
      ? response
      : new Response(`${why.title}. ${why.message} ${why.command ?? ''}`, {
          status: Math.max(400, response.status),
        });
  };
}
