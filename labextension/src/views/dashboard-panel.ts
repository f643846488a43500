/** A dashboard as a tab of the main area; the view itself is loaded when it is first seen. */

import type { MountedDashboard } from '@gpumon/page';
import { MainAreaWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import type { DashboardsOptions } from './dashboards';
import { gpuIcon } from '../icon';
import { LazyView } from './lazy-view';
import type { Settings } from '../settings';

/** Makes the tab of a dashboard that shows what `address` says. */
export function newDashboard(id: string, address: string, options: DashboardsOptions): MainAreaWidget<DashboardPanel> {
  const content = new DashboardPanel(id, address, options);
  const widget = new MainAreaWidget({ content });
  const name = (): void => {
    widget.title.label = titleOf(content.address, options.trans);
  };
  widget.id = `${id}-tab`;
  widget.title.icon = gpuIcon;
  widget.title.closable = true;
  content.addressChanged.connect(name);
  name();
  return widget;
}

export class DashboardPanel extends LazyView<MountedDashboard> {
  /** It shows something else. */
  readonly addressChanged = new Signal<this, void>(this);
  private interval_ms = 1000;

  constructor(
    id: string,
    /** What it shows. */
    public address: string,
    private readonly options: DashboardsOptions,
  ) {
    super(options.trans);
    this.id = id;
    this.node.style.background = 'var(--jp-layout-color1)';
  }

  /** Applies the settings of open charts. */
  apply({ interval }: Settings): void {
    this.interval_ms = interval * 1000;
    this.view?.setInterval(this.interval_ms);
    this.view?.invalidate();
  }

  protected override onActivateRequest(): void {
    this.node.querySelector<HTMLElement>('[tabindex]')?.focus();
  }

  protected override async load(): Promise<() => MountedDashboard> {
    const { connection, notebooks, trans } = this.options;
    const [feed, own, { addViewStyle, mountDashboard }] = await Promise.all([
      connection.feed(),
      notebooks(),
      import('./view'),
    ]);
    addViewStyle();
    return () =>
      mountDashboard(this.node, {
        feed,
        notebooks: own,
        address: this.address,
        interval_ms: this.interval_ms,
        title: trans.__('GPU Charts'),
        connectingMessage: trans.__('Jupyter is starting gpumon. This takes a few seconds the first time.'),
        onAddress: (address) => {
          this.address = address;
          this.addressChanged.emit();
        },
      });
  }
}

/** `GPU 0`, `GPUs 0, 1`, `GPU Charts`. */
function titleOf(address: string, trans: TranslationBundle): string {
  const gpus = new URLSearchParams(address).get('gpu')?.split(',') ?? [];
  if (gpus.length === 0) {
    return trans.__('GPU Charts');
  }
  return gpus.length === 1 ? trans.__('GPU %1', gpus[0]) : trans.__('GPUs %1', gpus.join(', '));
}
