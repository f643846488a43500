/** The panel in the side bar. */

import type { Mounted } from '@gpumon/page';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Connection } from '../server/connection';
import { gpuIcon } from '../icon';
import { LazyView } from './lazy-view';
import type { LabNotebooks } from '../notebook/notebooks';
import type { Settings } from '../settings';

export interface GpuPanelOptions {
  connection: Connection;
  notebooks: () => Promise<LabNotebooks>;
  trans: TranslationBundle;
  /** Opens the charts of a GPU. */
  onOpenGpu: (index: number) => void;
}

export class GpuPanel extends LazyView<Mounted> {
  private settings: Settings | null = null;

  constructor(private readonly options: GpuPanelOptions) {
    super(options.trans);
    this.id = 'gpumon-panel';
    this.addClass('gpumon-panel');
    this.node.style.overflowY = 'auto';
    this.node.style.background = 'var(--jp-layout-color1)';
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', options.trans.__('GPUs'));
    this.title.icon = gpuIcon;
    this.title.caption = options.trans.__('GPUs');
  }

  /** Applies the settings of the panel. */
  apply(settings: Settings): void {
    this.settings = settings;
    this.view?.setInterval(settings.interval * 1000);
    this.view?.invalidate();
  }

  protected override async load(): Promise<() => Mounted> {
    const { connection, notebooks, trans, onOpenGpu } = this.options;
    const [feed, own, { addViewStyle, mountMonitor }] = await Promise.all([
      connection.feed(),
      notebooks(),
      import('./view'),
    ]);
    addViewStyle();
    return () =>
      mountMonitor(this.node, {
        feed,
        notebooks: own,
        ...(this.settings !== null && {
          interval_ms: this.settings.interval * 1000,
          spanMinutes: this.settings.spanMinutes,
        }),
        title: trans.__('GPUs'),
        onOpenGpu,
        connectingMessage: trans.__('Jupyter is starting gpumon. This takes a few seconds the first time.'),
      });
  }
}
