/** All GPUs in one line. */

import { memoryNumber, memoryTotal, watts } from '../lib/format';
import { joined } from '../lib/text';
import { indexAt, type Timeline } from '../lib/timeline';
import { trans } from '../lib/translation';
import type { GpuSample } from '../wire';
import { worstLevel, severityLevel } from './condition';
import { seriesKey, type GpuState } from './gpu';
import { valueOf } from './reading';

/** A GPU busier than this is at work. */
const BUSY_PERCENT = 5;

/** A past moment, as far as lines tell of it. */
export interface Moment {
  at_ms: number;
  timeline: Timeline;
  gap_ms: number;
}

/** What is summed up of one GPU. */
interface Load {
  percent: number | null;
  used: number | null;
  total: number | null;
  watts: number | null;
}

/**
 * `5 of 8 busy`, `412 / 1,120 GiB`, `3,210 W`, the weightiest first, of now or of a past moment; GPUs that do not answer
 * are counted apart.
 */
export function summaryOf(gpus: readonly GpuState[], past: Moment | null = null): string[] {
  const answering = gpus.flatMap((gpu) => (gpu.now?.health.state === 'ok' ? [gpu.now] : []));
  const alerts = past === null ? describeAlerts(gpus, answering) : [];
  const loads =
    past === null
      ? answering.map(loadOf)
      : gpus.map((gpu) => pastLoadOf(gpu, past)).filter(({ percent, used }) => percent !== null || used !== null);
  const used = sum(loads.map((load) => load.used));
  const total = sum(loads.map((load) => load.total));
  const power = sum(loads.map((load) => load.watts));
  return [
    ...alerts,
    describeBusy(loads, gpus.length),
    used === null || total === null ? '' : `${memoryNumber(used)} ${memoryTotal(total)}`,
    power === null ? '' : watts(power),
  ].filter((part) => part !== '');
}

function describeAlerts(gpus: readonly GpuState[], answering: readonly GpuSample[]): string[] {
  const asleep = gpus.filter((gpu) => gpu.now?.health.state === 'asleep').length;
  const silent = gpus.filter((gpu) => gpu.now !== null).length - answering.length - asleep;
  const worst = answering.map(({ conditions }) =>
    worstLevel(conditions.map(({ severity }) => severityLevel(severity))),
  );
  const critical = worst.filter((level) => level === 'critical').length;
  const warned = worst.filter((level) => level === 'warning').length;
  return [
    silent > 0 ? trans._n('%1 not responding', '%1 not responding', silent) : '',
    asleep > 0 ? trans._n('%1 asleep', '%1 asleep', asleep) : '',
    joined(
      [
        critical > 0 ? trans._n('%1 critical', '%1 critical', critical) : '',
        warned > 0 ? trans._n('%1 with a warning', '%1 with warnings', warned) : '',
      ],
      ', ',
    ),
  ];
}

function loadOf({ utilization, memory, power }: GpuSample): Load {
  return {
    percent: valueOf(utilization.gpu_percent),
    used: valueOf(memory.used_bytes),
    total: valueOf(memory.total_bytes),
    watts: valueOf(power.draw_watts),
  };
}

function pastLoadOf(gpu: GpuState, { timeline, at_ms, gap_ms }: Moment): Load {
  const index = indexAt(timeline.times_ms, at_ms, gap_ms);
  const at = (metric: string): number | null => {
    const value = timeline.values(seriesKey(gpu, metric))[index] ?? NaN;
    return Number.isNaN(value) ? null : value;
  };
  const total = gpu.now === null ? null : valueOf(gpu.now.memory.total_bytes);
  return {
    percent: at('utilization.gpu_percent'),
    used: at('memory.used_bytes'),
    total,
    watts: at('power.draw_watts'),
  };
}

function describeBusy(loads: readonly Load[], all: number): string {
  const utilization = loads.map(({ percent }) => percent).filter((value) => value !== null);
  const busy = utilization.filter((value) => value > BUSY_PERCENT).length;
  if (utilization.length === 0) {
    return '';
  }
  const several = trans._n('%1 of %2 busy', '%1 of %2 busy', busy, all);
  return all > 1 ? several : busy === 1 ? trans.__('busy') : trans.__('idle');
}

/** The sum; `null` where a part is missing, since a sum of the rest would be wrong. */
function sum(values: readonly (number | null)[]): number | null {
  return values.length === 0
    ? null
    : values.reduce((total, value) => (total === null || value === null ? null : total + value), 0);
}
