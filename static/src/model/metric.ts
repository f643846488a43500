/** The numbers of a GPU, and of the machine, that have a line over time. */

import type { Activity, GpuSample, HostSample, MigSample, Reading } from '../wire';
import { active } from './details/engines';
import { NAMES, type Name } from './metric-name';
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
  label: Name;
  /** What it is called beside the other lines of its chart, where that differs. */
  part?: Name;
  unit: Unit;
  colour: Colour;
  read: (sample: S) => Reading<number>;
  /** What the value is out of, in the same unit; `null` where that is not read. */
  limit: ((sample: S) => Reading<number>) | null;
}

/** What an overview shows of each GPU; the server tells its history unasked. */
export const METRICS: readonly Metric[] = [
  metric('utilization.gpu_percent', NAMES.utilization, PERCENT, 'utilization', (gpu) => gpu.utilization.gpu_percent),
  {
    ...metric('memory.used_bytes', NAMES.memory, MEMORY, 'memory', (gpu) => gpu.memory.used_bytes),
    part: NAMES.inUse,
    limit: (gpu) => gpu.memory.total_bytes,
  },
  {
    ...metric('power.draw_watts', NAMES.power, WATTS, 'power', (gpu) => gpu.power.draw_watts),
    part: NAMES.average,
    limit: (gpu) => gpu.power.limit_watts,
  },
  {
    ...metric(
      'temperature.gpu_celsius',
      NAMES.temperature,
      CELSIUS,
      'temperature',
      (gpu) => gpu.temperature.gpu_celsius,
    ),
    part: NAMES.gpu,
  },
];

/** What charts can show besides. */
export const MORE_METRICS: readonly Metric[] = [
  activity('sm', NAMES.sm, 2),
  activity('tensor', NAMES.tensor, 4),
  activity('dram_bandwidth', NAMES.bandwidth, 3),
  activity('occupancy', NAMES.occupancy, 0),
  activity('fp64', NAMES.fp64, 1),
  activity('fp32', NAMES.fp32, 2),
  activity('fp16', NAMES.fp16, 3),
  activity('integer', NAMES.integer, 4),
  share('memory', NAMES.controller, 0),
  share('encoder', NAMES.encoder, 1),
  share('decoder', NAMES.decoder, 2),
  share('jpeg', NAMES.jpeg, 3),
  share('ofa', NAMES.flow, 4),
  metric('power.instant_watts', NAMES.instant, WATTS, 4, (gpu) => gpu.power.instant_watts),
  metric('temperature.memory_celsius', NAMES.memory, CELSIUS, 4, (gpu) => gpu.temperature.memory_celsius),
  metric('clocks.sm_mhz', NAMES.sm, MEGAHERTZ, 1, (gpu) => gpu.clocks.sm_mhz),
  metric('clocks.memory_mhz', NAMES.memory, MEGAHERTZ, 'memory', (gpu) => gpu.clocks.memory_mhz),
  metric('clocks.video_mhz', NAMES.video, MEGAHERTZ, 2, (gpu) => gpu.clocks.video_mhz),
  metric('pcie.rx_bytes_per_second', NAMES.received, RATE, 1, (gpu) => gpu.pcie.rx_bytes_per_second),
  metric('pcie.tx_bytes_per_second', NAMES.sent, RATE, 3, (gpu) => gpu.pcie.tx_bytes_per_second),
  metric('nvlink.rx_bytes_per_second', NAMES.received, RATE, 1, (gpu) => gpu.nvlink.rx_bytes_per_second),
  metric('nvlink.tx_bytes_per_second', NAMES.sent, RATE, 3, (gpu) => gpu.nvlink.tx_bytes_per_second),
  metric('fan_percent', NAMES.fan, PERCENT, 1, (gpu) => gpu.fan_percent),
];

export const HOST_METRICS: readonly Metric<HostSample>[] = [
  metric('host.cpu.busy_percent', NAMES.cpu, PERCENT, 'utilization', (host) => host.cpu.busy_percent),
  {
    ...metric('host.memory.used_bytes', NAMES.ram, MEMORY, 'memory', (host: HostSample) => host.memory.used_bytes),
    limit: (host) => host.memory.total_bytes,
  },
  metric('host.swap.used_bytes', NAMES.swap, MEMORY, 3, (host) => host.swap.used_bytes),
  metric('host.disk.read_bytes_per_second', NAMES.read, RATE, 1, (host) => host.disk.read_bytes_per_second),
  metric('host.disk.written_bytes_per_second', NAMES.written, RATE, 3, (host) => host.disk.written_bytes_per_second),
  metric(
    'host.network.received_bytes_per_second',
    NAMES.received,
    RATE,
    1,
    (host) => host.network.received_bytes_per_second,
  ),
  metric('host.network.sent_bytes_per_second', NAMES.sent, RATE, 3, (host) => host.network.sent_bytes_per_second),
];

export const MIG_METRICS: readonly Metric<MigSample>[] = [
  metric('mig.memory.used_bytes', NAMES.memory, MEMORY, 'memory', (device) => device.memory.used_bytes),
  metric('mig.activity.sm_percent', NAMES.sm, PERCENT, 2, (device) => active(device.activity, 'sm_percent')),
];

function metric<S = GpuSample>(
  id: string,
  label: Name,
  unit: Unit,
  colour: Colour,
  read: (sample: S) => Reading<number>,
): Metric<S> {
  return { id, label, unit, colour, read, limit: null };
}

type Parts<T> = { [K in keyof T & string as K extends `${infer Name}_percent` ? Name : never]: unknown };

function share(part: keyof Parts<GpuSample['utilization']>, label: Name, colour: Colour): Metric {
  return metric(`utilization.${part}_percent`, label, PERCENT, colour, (gpu) => gpu.utilization[`${part}_percent`]);
}

function activity(part: keyof Parts<Activity>, label: Name, colour: Colour): Metric {
  return metric(`activity.${part}_percent`, label, PERCENT, colour, (gpu) => active(gpu.activity, `${part}_percent`));
}
