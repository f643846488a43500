import type { Monitor, MountOptions, ViewOptions } from '@gpumon/page';

import { gpuIcon } from '../icon';
import { FeedView, type LazyViewOptions } from './lazy-view';

export interface GpuPanelOptions extends LazyViewOptions {
  onOpenGpu: (index: number) => void;
  onOpenCharts: () => void;
  onSettings: () => void;
}

/** The GPU panel in the sidebar. */
export class GpuPanel extends FeedView<Monitor> {
  constructor(private readonly panelOptions: GpuPanelOptions) {
    const name = panelOptions.trans.__('GPUs');
    super('gpumon-panel', name, panelOptions);
    this.addClass('gpumon-panel');
    this.node.style.overflowY = 'auto';
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', name);
    this.title.icon = gpuIcon;
    this.title.caption = name;
  }

  showBenchmarks(): void {
    void this.mounted.then((view) => view.showBenchmarks());
  }

  showTour(): void {
    void this.mounted.then((view) => view.showTour());
  }

  protected override mount(
    { mountMonitor }: typeof import('./view'),
    options: MountOptions & ViewOptions,
  ): Monitor {
    const { onOpenGpu, onOpenCharts, onSettings } = this.panelOptions;
    return mountMonitor(this.node, {
      ...options,
      onOpenGpu,
      onOpenCharts,
      onSettings,
      tour: true,
      ...(this.settings !== null && { spanMinutes: this.settings.spanMinutes }),
    });
  }
}
