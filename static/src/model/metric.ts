/** The numbers of a GPU, and of the machine, that have a line over time. */

import type { Activity, GpuSample, HostSample, MigSample, Reading } from '../wire';
import { active } from './details/engines';
import { CELSIUS, MEGAHERTZ, MEMORY, PERCENT, RATE, WATTS, type Unit } from './unit';

/** Stands for what each holder has of a GPU's memory. */
export const HELD = 'held';
/** Stands for the metrics of MIG devices. */
export const MIG = 'mig';

/** The colours of lines: one for each meaning, and those that tell lines of one chart apart. */
export type Colour = 'utilization' | 'memory' | 'power' | 'temperature' | 'text' | number;

/** One number of what `S` is a sample of. */
export interface Metric<S = GpuSample> {
  /** Its name in history frames: the path in the sample. */
  id: string;
  label: string;
  /** What it is called beside the other lines of its chart, where that differs. */
  part?: string;
  unit: Unit;
  colour: Colour;
  read: (sample: S) => Reading<number>;
  /** What the value is out of, in the same unit; `null` where that is not read. */
  limit: ((sample: S) => Reading<number>) | null;
}

/** What an overview shows of each GPU; the server tells its history unasked. */
export const METRICS: readonly Metric[] = [
  metric('utilization.gpu_percent', 'Utilization', PERCENT, 'utilization', (gpu) => gpu.utilization.gpu_percent),
  {
    ...metric('memory.used_bytes', 'Memory', MEMORY, 'memory', (gpu) => gpu.memory.used_bytes),
    part: 'In use',
    limit: (gpu) => gpu.memory.total_bytes,
  },
  {
    ...metric('power.draw_watts', 'Power', WATTS, 'power', (gpu) => gpu.power.draw_watts),
    part: 'Average',
    limit: (gpu) => gpu.power.limit_watts,
  },
  {
    ...metric('temperature.gpu_celsius', 'Temperature', CELSIUS, 'temperature', (gpu) => gpu.temperature.gpu_celsius),
    part: 'GPU',
  },
];

/** What charts can show besides. */
export const MORE_METRICS: readonly Metric[] = [
  activity('sm', 'SM', 2),
  activity('tensor', 'Tensor cores', 4),
  activity('dram_bandwidth', 'Memory bandwidth', 3),
  activity('occupancy', 'Occupancy', 0),
  activity('fp64', 'FP64', 1),
  activity('fp32', 'FP32', 2),
  activity('fp16', 'FP16', 3),
  activity('integer', 'Integer', 4),
  share('memory', 'Memory controller', 0),
  share('encoder', 'Encoder', 1),
  share('decoder', 'Decoder', 2),
  share('jpeg', 'JPEG', 3),
  share('ofa', 'Optical flow', 4),
  metric('power.instant_watts', 'Instant', WATTS, 4, (gpu) => gpu.power.instant_watts),
  metric('temperature.memory_celsius', 'Memory', CELSIUS, 4, (gpu) => gpu.temperature.memory_celsius),
  metric('clocks.sm_mhz', 'SM', MEGAHERTZ, 1, (gpu) => gpu.clocks.sm_mhz),
  metric('clocks.memory_mhz', 'Memory', MEGAHERTZ, 'memory', (gpu) => gpu.clocks.memory_mhz),
  metric('clocks.video_mhz', 'Video', MEGAHERTZ, 2, (gpu) => gpu.clocks.video_mhz),
  metric('pcie.rx_bytes_per_second', 'Received', RATE, 1, (gpu) => gpu.pcie.rx_bytes_per_second),
  metric('pcie.tx_bytes_per_second', 'Sent', RATE, 3, (gpu) => gpu.pcie.tx_bytes_per_second),
  metric('nvlink.rx_bytes_per_second', 'Received', RATE, 1, (gpu) => gpu.nvlink.rx_bytes_per_second),
  metric('nvlink.tx_bytes_per_second', 'Sent', RATE, 3, (gpu) => gpu.nvlink.tx_bytes_per_second),
  metric('fan_percent', 'Fan', PERCENT, 1, (gpu) => gpu.fan_percent),
];

export const HOST_METRICS: readonly Metric<HostSample>[] = [
  metric('host.cpu.busy_percent', 'CPU', PERCENT, 'utilization', (host) => host.cpu.busy_percent),
  {
    ...metric('host.memory.used_bytes', 'RAM', MEMORY, 'memory', (host: HostSample) => host.memory.used_bytes),
    limit: (host) => host.memory.total_bytes,
  },
  metric('host.swap.used_bytes', 'Swap', MEMORY, 3, (host) => host.swap.used_bytes),
  metric('host.disk.read_bytes_per_second', 'Read', RATE, 1, (host) => host.disk.read_bytes_per_second),
  metric('host.disk.written_bytes_per_second', 'Written', RATE, 3, (host) => host.disk.written_bytes_per_second),
  metric(
    'host.network.received_bytes_per_second',
    'Received',
    RATE,
    1,
    (host) => host.network.received_bytes_per_second,
  ),
  metric('host.network.sent_bytes_per_second', 'Sent', RATE, 3, (host) => host.network.sent_bytes_per_second),
];

export const MIG_METRICS: readonly Metric<MigSample>[] = [
  metric('mig.memory.used_bytes', 'Memory', MEMORY, 'memory', (device) => device.memory.used_bytes),
  metric('mig.activity.sm_percent', 'SM', PERCENT, 2, (device) => active(device.activity, 'sm_percent')),
];

function metric<S = GpuSample>(
  id: string,
  label: string,
  unit: Unit,
  colour: Colour,
  read: (sample: S) => Reading<number>,
): Metric<S> {
  return { id, label, unit, colour, read, limit: null };
}

type Parts<T> = { [K in keyof T & string as K extends `${infer Name}_percent` ? Name : never]: unknown };

function share(part: keyof Parts<GpuSample['utilization']>, label: string, colour: Colour): Metric {
  return metric(`utilization.${part}_percent`, label, PERCENT, colour, (gpu) => gpu.utilization[`${part}_percent`]);
}

function activity(part: keyof Parts<Activity>, label: string, colour: Colour): Metric {
  return metric(`activity.${part}_percent`, label, PERCENT, colour, (gpu) => active(gpu.activity, `${part}_percent`));
}
