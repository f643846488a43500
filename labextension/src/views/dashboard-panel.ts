/** A dashboard as a tab of the main area; the view itself is loaded when it is first seen. */

import type { MountedDashboard, MountOptions, ViewOptions } from '@gpumon/page';
import { MainAreaWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import { gpuIcon } from '../icon';
import { LazyView, type LazyViewOptions } from './lazy-view';

/** Makes the tab of a dashboard that shows what `address` says. */
export function newDashboard(
  id: string,
  address: string,
  options: LazyViewOptions,
): MainAreaWidget<DashboardPanel> {
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
  readonly addressChanged = new Signal<this, void>(this);

  constructor(
    id: string,
    public address: string,
    options: LazyViewOptions,
  ) {
    super(id, options.trans.__('GPU Charts'), options);
  }

  protected override mount(
    { mountDashboard }: typeof import('./view'),
    options: MountOptions & ViewOptions,
  ): MountedDashboard {
    return mountDashboard(this.node, {
      ...options,
      address: this.address,
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
