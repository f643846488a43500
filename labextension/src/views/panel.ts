/** The GPU panel in the sidebar, and its icon. */

import type { Monitor, MountOptions, ViewOptions } from '@gpumon/page';
import { LabIcon } from '@jupyterlab/ui-components';

import type { ExtensionParts } from '../parts';
import { FeedView } from './lazy-view';

export const gpuIcon = new LabIcon({
  name: 'gpumon:gpu',
  // oxlint-disable-next-line texts/translated
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24" fill="none">
  <g class="jp-icon3" stroke="#616161" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round">
    <rect x="4" y="6" width="16" height="12" rx="2"/>
    <path d="M8 3v3M12 3v3M16 3v3M8 18v3M12 18v3M16 18v3"/>
    <path d="M7 13h2l1.5-3.5 2.5 5.5 1.5-3.5 0.5 1.5h2"/>
  </g>
</svg>`,
});

export interface GpuPanelOptions extends ExtensionParts {
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
