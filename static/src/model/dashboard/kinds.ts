/** The charts that a dashboard can show. A chart that is missing needs one line here. */

import type { GpuSample, HostSample } from '../../wire';
import { HOST_METRICS, METRICS, MORE_METRICS, type Metric } from '../metric';

export interface ChartKind<S = GpuSample> {
  /** As addresses and settings name it. */
  id: string;
  title: string;
  /** One line each; the first matters most. */
  metrics: readonly Metric<S>[];
}

/** Of one GPU, or of all. */
export const GPU_CHARTS: readonly ChartKind[] = [
  gpu('activity', 'Activity', 'utilization.gpu_percent', 'activity.sm', 'activity.tensor', 'activity.dram'),
  gpu('memory', 'Memory', 'memory.used_bytes'),
  gpu('power', 'Power', 'power.'),
  gpu('temperature', 'Temperature', 'temperature.'),
  gpu('clocks', 'Clocks', 'clocks.'),
  gpu('pcie', 'PCIe', 'pcie.'),
  gpu('nvlink', 'NVLink', 'nvlink.'),
  gpu('units', 'Execution units', 'activity.occ', 'activity.fp', 'activity.int'),
  gpu('engines', 'Engines', 'utilization.mem', 'utilization.en', 'utilization.de', 'utilization.j', 'utilization.o'),
  gpu('fan', 'Fan', 'fan_percent'),
];

/** Of the machine around them. */
export const HOST_CHARTS: readonly ChartKind<HostSample>[] = [
  host('cpu', 'Processor', 'host.cpu'),
  host('ram', 'Main memory', 'host.memory', 'host.swap'),
  host('disk', 'Disks', 'host.disk'),
  host('network', 'Network', 'host.network'),
];

/** MIG devices have charts of their own. */
export const MIG_CHART = { id: 'mig', title: 'MIG devices' };

/** The names of all charts. */
export const CHART_IDS: readonly string[] = [...GPU_CHARTS, MIG_CHART, ...HOST_CHARTS].map(({ id }) => id);

function gpu(id: string, title: string, ...prefixes: string[]): ChartKind {
  return { id, title, metrics: chosen([...METRICS, ...MORE_METRICS], prefixes) };
}

function host(id: string, title: string, ...prefixes: string[]): ChartKind<HostSample> {
  return { id, title, metrics: chosen(HOST_METRICS, prefixes) };
}

/** Those whose names begin with one of these, in the order of the catalogue. */
function chosen<S>(all: readonly Metric<S>[], prefixes: readonly string[]): readonly Metric<S>[] {
  return all.filter((metric) => prefixes.some((prefix) => metric.id.startsWith(prefix)));
}
