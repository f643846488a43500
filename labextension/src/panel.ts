/** The panel in the side bar. It connects when it is first shown, and rests while it is hidden. */

import type { Monitor } from '@gpumon/page';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import type { Connection } from './connection';
import { gpuIcon } from './icon';
import type { LabNotebooks } from './notebooks';
import { shownBy, type Settings } from './settings';

export interface GpuPanelOptions {
  connection: Connection;
  notebooks: () => Promise<LabNotebooks>;
  trans: TranslationBundle;
  /** Opens the charts of a GPU. */
  onOpenGpu: (index: number) => void;
}

export class GpuPanel extends Widget {
  private monitor: Monitor | null = null;
  private mounting = false;
  private settings: Settings | null = null;

  constructor(private readonly options: GpuPanelOptions) {
    super();
    this.id = 'gpumon-panel';
    this.addClass('gpumon-panel');
    this.node.style.overflowY = 'auto';
    this.node.style.background = 'var(--jp-layout-color1)';
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', options.trans.__('GPUs'));
    this.title.icon = gpuIcon;
    this.title.caption = options.trans.__('GPUs');
  }

  /** JupyterLab has another theme now. */
  themeChanged(): void {
    this.monitor?.themeChanged();
  }

  /** Heeds the settings that are about the panel. */
  apply(settings: Settings): void {
    this.settings = settings;
    this.monitor?.setInterval(settings.interval * 1000);
    this.monitor?.invalidate();
  }

  override dispose(): void {
    this.monitor?.dispose();
    this.monitor = null;
    super.dispose();
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
    this.monitor?.setVisible(false);
  }

  private async reveal(): Promise<void> {
    if (this.monitor !== null) {
      this.monitor.setVisible(true);
      return;
    }
    if (this.mounting) {
      return;
    }
    this.mounting = true;
    const { connection, notebooks, trans, onOpenGpu } = this.options;
    try {
      const [feed, own, { addViewStyle, mountMonitor }] = await Promise.all([
        connection.feed(),
        notebooks(),
        import('./view'),
      ]);
      if (this.isDisposed) {
        return;
      }
      addViewStyle();
      this.monitor = mountMonitor(this.node, {
        feed,
        notebooks: own,
        ...(this.settings === null ? {} : shownBy(this.settings)),
        title: trans.__('GPUs'),
        onOpenGpu,
        connectingMessage: trans.__('Jupyter starts gpumon. The first time takes a few seconds.'),
      });
      this.monitor.setVisible(this.isVisible);
    } finally {
      this.mounting = false;
    }
  }
}
