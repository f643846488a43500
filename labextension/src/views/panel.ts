/** The panel in the side bar. */

import type { Monitor, MountOptions, ViewOptions } from '@gpumon/page';

import { gpuIcon } from '../icon';
import { LazyView, type LazyViewOptions } from './lazy-view';

export interface GpuPanelOptions extends LazyViewOptions {
  onOpenGpu: (index: number) => void;
}

export class GpuPanel extends LazyView<Monitor> {
  constructor(private readonly options: GpuPanelOptions) {
    const name = options.trans.__('GPUs');
    super('gpumon-panel', name, options);
    this.addClass('gpumon-panel');
    this.node.style.overflowY = 'auto';
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', name);
    this.title.icon = gpuIcon;
    this.title.caption = name;
  }

  showBenchmarks(): void {
    this.withView((view) => view.showBenchmarks());
  }

  showTour(): void {
    this.withView((view) => view.showTour());
  }

  protected override mount(
    { mountMonitor }: typeof import('./view'),
    options: MountOptions & ViewOptions,
  ): Monitor {
    const { onOpenGpu } = this.options;
    return mountMonitor(this.node, {
      ...options,
      onOpenGpu,
      tour: true,
      ...(this.settings !== null && { spanMinutes: this.settings.spanMinutes }),
    });
  }
}
