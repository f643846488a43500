/** The charts that a dashboard can show. A chart that is missing needs one line here. */

import { trans } from '../../lib/translation';
import type { GpuSample, HostSample } from '../../wire';
import { HOST_METRICS, METRICS, MORE_METRICS, type Metric } from '../metric';
import type { Name } from '../metric-name';

export interface ChartKind<S = GpuSample> {
  /** As addresses and settings name it. */
  id: string;
  title: Name;
  /** One line each; the first matters most. */
  metrics: readonly Metric<S>[];
}

/** Of one GPU, or of all. */
export const GPU_CHARTS: readonly ChartKind[] = [
  gpu(
    'activity',
    () => trans.__('Activity'),
    'utilization.gpu_percent',
    'activity.sm',
    'activity.tensor',
    'activity.dram',
  ),
  gpu('memory', () => trans.__('Memory'), 'memory.used_bytes'),
  gpu('power', () => trans.__('Power'), 'power.'),
  gpu('temperature', () => trans.__('Temperature'), 'temperature.'),
  gpu('clocks', () => trans.__('Clocks'), 'clocks.'),
  gpu('pcie', () => 'PCIe', 'pcie.'),
  gpu('nvlink', () => 'NVLink', 'nvlink.'),
  gpu('units', () => trans.__('Execution units'), 'activity.occ', 'activity.fp', 'activity.int'),
  gpu(
    'engines',
    () => trans.__('Engines'),
    'utilization.mem',
    'utilization.en',
    'utilization.de',
    'utilization.j',
    'utilization.o',
  ),
  gpu('fan', () => trans.__('Fan'), 'fan_percent'),
];

/** Of the machine around them. */
export const HOST_CHARTS: readonly ChartKind<HostSample>[] = [
  host('cpu', () => trans.__('Processor'), 'host.cpu'),
  host('ram', () => trans.__('Main memory'), 'host.memory', 'host.swap'),
  host('disk', () => trans.__('Disks'), 'host.disk'),
  host('network', () => trans.__('Network'), 'host.network'),
];

/** MIG devices have charts of their own. */
export const MIG_CHART = { id: 'mig', title: () => trans.__('MIG devices') };

/** The names of all charts. */
export const CHART_IDS: readonly string[] = [...GPU_CHARTS, MIG_CHART, ...HOST_CHARTS].map(({ id }) => id);

function gpu(id: string, title: Name, ...prefixes: string[]): ChartKind {
  return { id, title, metrics: chosen([...METRICS, ...MORE_METRICS], prefixes) };
}

function host(id: string, title: Name, ...prefixes: string[]): ChartKind<HostSample> {
  return { id, title, metrics: chosen(HOST_METRICS, prefixes) };
}

/** Those whose names begin with one of these, in the order of the catalogue. */
function chosen<S>(all: readonly Metric<S>[], prefixes: readonly string[]): readonly Metric<S>[] {
  return all.filter((metric) => prefixes.some((prefix) => metric.id.startsWith(prefix)));
}
