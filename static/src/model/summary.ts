/** A one-line summary of all GPUs. */

import { formatMemoryNumber, formatMemoryTotal, formatWatts } from '../lib/format';
import { plainText } from '../lib/text';
import { indexAfter, nearestIndex, type SeriesSource } from '../lib/timeline';
import { trans } from '../lib/translation';
import type { GpuSample } from '../wire';
import { commonName, seriesKey, isUnified, type GpuState } from './gpu';
import { valueOf } from './reading';

/**
 * A GPU is busy while its utilization is above this percentage, and for ten seconds afterwards.
 * Therefore a GPU that briefly waits for data still counts as busy.
 */
const BUSY_PERCENT = 5;
const BUSY_MS = 10_000;

/** A time and the time series that are summarized. Values after this time are ignored. */
interface SeriesEnd {
  at_ms: number;
  timeline: SeriesSource;
}

export interface SummaryContext extends SeriesEnd {
  /** Whether `at_ms` is in the past, so that only time series are available. */
  isPast: boolean;
  gap_ms: number;
}

/** The values of one GPU for the summary. */
interface GpuLoad {
  /** The highest utilization of the last ten seconds. */
  percent: number | null;
  used: number | null;
  total: number | null;
  /** Whether the memory is shared with the machine. */
  unified: boolean;
  watts: number | null;
}

/**
 * Summarizes GPUs at present or at a past time: `5 of 8 H200 busy`, `412 / 1,120 GiB`, `3,210 W`,
 * the most important part first. GPUs that do not respond are counted separately.
 */
export function summaryOf(gpus: readonly GpuState[], moment: SummaryContext): string[] {
  const answering = gpus.flatMap((gpu) => (gpu.now?.health.state === 'ok' ? [gpu.now] : []));
  const absent = moment.isPast ? [] : describeAbsentGpus(gpus, answering.length);
  const loads = moment.isPast
    ? gpus
        .map((gpu) => pastLoadOf(gpu, moment))
        .filter(({ percent, used }) => percent !== null || used !== null)
    : answering.map((gpu) => loadOf(gpu, moment));
  const power = sum(loads.map((load) => load.watts));
  return [
    ...absent,
    describeBusyGpus(loads, gpus),
    describeMemory(loads),
    power === null ? '' : formatWatts(power),
  ].filter((part) => part !== '');
}

function describeAbsentGpus(gpus: readonly GpuState[], answering: number): string[] {
  const asleep = gpus.filter((gpu) => gpu.now?.health.state === 'asleep').length;
  const silent = gpus.filter((gpu) => gpu.now !== null).length - answering - asleep;
  return [
    silent > 0 ? trans._n('%1 not responding', '%1 not responding', silent) : '',
    asleep > 0 ? trans._n('%1 asleep', '%1 asleep', asleep) : '',
  ];
}

function loadOf(gpu: GpuSample, moment: SeriesEnd): GpuLoad {
  const percent = valueOf(gpu.utilization.gpu_percent);
  return {
    percent:
      percent === null ? null : Math.max(percent, highestRecentUtilization(gpu, moment) ?? 0),
    used: valueOf(gpu.memory.used_bytes),
    total: valueOf(gpu.memory.total_bytes),
    unified: isUnified(gpu),
    watts: valueOf(gpu.power.draw_watts),
  };
}

function pastLoadOf(gpu: GpuState, moment: SummaryContext): GpuLoad {
  const { timeline, at_ms, gap_ms } = moment;
  const index = nearestIndex(timeline.times_ms, at_ms, gap_ms);
  const at = (metric: string): number | null => {
    const value = timeline.values(seriesKey(gpu, metric))[index] ?? NaN;
    return Number.isNaN(value) ? null : value;
  };
  const total = gpu.now === null ? null : valueOf(gpu.now.memory.total_bytes);
  return {
    percent: highestRecentUtilization(gpu, moment),
    used: at('memory.used_bytes'),
    total,
    unified: isUnified(gpu.now),
    watts: at('power.draw_watts'),
  };
}

function highestRecentUtilization(
  gpu: { index: number; uuid: string | null },
  { timeline, at_ms }: SeriesEnd,
): number | null {
  const from = indexAfter(timeline.times_ms, at_ms - BUSY_MS);
  const to = indexAfter(timeline.times_ms, at_ms);
  const known = timeline.values(seriesKey(gpu, 'utilization.gpu_percent')).subarray(from, to);
  const highest = known.reduce((most, percent) => (percent > most ? percent : most), -1);
  return highest < 0 ? null : highest;
}

/** Returns whether a GPU responds and was busy in the ten seconds before `moment`. */
export function isBusy({ now }: GpuState, moment: SeriesEnd): boolean {
  return now?.health.state === 'ok' && (loadOf(now, moment).percent ?? 0) > BUSY_PERCENT;
}

function describeBusyGpus(loads: readonly GpuLoad[], gpus: readonly GpuState[]): string {
  const utilization = loads.map(({ percent }) => percent).filter((value) => value !== null);
  const busy = utilization.filter((value) => value > BUSY_PERCENT).length;
  if (utilization.length === 0) {
    return '';
  }
  if (gpus.length === 1) {
    return busy === 1 ? trans.__('busy') : trans.__('idle');
  }
  const name = commonName(gpus);
  return name === null
    ? trans._n('%1 of %2 busy', '%1 of %2 busy', busy, gpus.length)
    : trans._n('%1 of %2 %3 busy', '%1 of %2 %3 busy', busy, gpus.length, plainText(name));
}

/**
 * Returns the use of dedicated memory, or of unified memory if no GPU has dedicated memory. Unified
 * memory is counted once, because all GPUs share it.
 */
function describeMemory(loads: readonly GpuLoad[]): string {
  const device = loads.filter(({ unified }) => !unified);
  const own = device.length > 0;
  const counted = own ? device : loads;
  const used = sum(counted.map((load) => load.used));
  const totals = counted.map((load) => load.total);
  const all = sum(totals);
  const total = own || all === null ? all : Math.max(...totals.map((one) => one ?? 0));
  if (used === null || total === null) {
    return '';
  }
  const text = `${formatMemoryNumber(used)} ${formatMemoryTotal(total)}`;
  return own ? text : trans.__('%1 unified', text);
}

/** Returns the sum, or `null` if a value is missing, because a partial sum would be wrong. */
function sum(values: readonly (number | null)[]): number | null {
  return values.length === 0
    ? null
    : values.reduce((total, value) => (total === null || value === null ? null : total + value), 0);
}
