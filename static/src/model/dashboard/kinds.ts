/** The charts that a dashboard can show. A chart is one line here, and named by its fields in the catalogue. */

import { trans } from '../../lib/translation';
import type { GpuSample, HostSample } from '../../wire';
import { GPU_METRICS, HOST_METRICS, type Metric } from '../metric';

export interface ChartKind<S = GpuSample> {
  /** As addresses and settings name it. */
  id: string;
  title: () => string;
  /** One line each; the first matters most. */
  metrics: readonly Metric<S>[];
}

/** Of one GPU, or of all. */
export const GPU_CHARTS: readonly ChartKind[] = [
  kind('activity', () => trans.__('Activity'), GPU_METRICS),
  kind('memory', () => trans.__('Memory'), GPU_METRICS),
  kind('power', () => trans.__('Power'), GPU_METRICS),
  kind('temperature', () => trans.__('Temperature'), GPU_METRICS),
  kind('clocks', () => trans.__('Clocks'), GPU_METRICS),
  kind('pcie', () => 'PCIe', GPU_METRICS),
  kind('nvlink', () => 'NVLink', GPU_METRICS),
  kind('units', () => trans.__('Execution units'), GPU_METRICS),
  kind('engines', () => trans.__('Engines'), GPU_METRICS),
  kind('fan', () => trans.__('Fan'), GPU_METRICS),
];

/** Of the machine around them. */
export const HOST_CHARTS: readonly ChartKind<HostSample>[] = [
  kind('cpu', () => trans.__('CPU'), HOST_METRICS),
  kind('ram', () => trans.__('RAM'), HOST_METRICS),
  kind('disk', () => trans.__('Disks'), HOST_METRICS),
  kind('network', () => trans.__('Network'), HOST_METRICS),
];

/** MIG devices have charts of their own. */
export const MIG_CHART = { id: 'mig', title: () => trans.__('MIG devices') };

export const CHARTS: readonly Pick<ChartKind, 'id' | 'title'>[] = [...GPU_CHARTS, MIG_CHART, ...HOST_CHARTS];
export const CHART_IDS = CHARTS.map(({ id }) => id);

/** Its lines are the fields that name it in the catalogue. */
function kind<S>(id: string, title: () => string, all: readonly Metric<S>[]): ChartKind<S> {
  return { id, title, metrics: all.filter(({ chart }) => chart === id) };
}
