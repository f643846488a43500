/** All GPUs in one line. */

import { memoryNumber, memoryTotal, watts } from '../lib/format';
import { trans } from '../lib/translation';
import { worstLevel, severityLevel } from './condition';
import type { GpuState } from './gpu';
import { valueOf } from './reading';

/** A GPU busier than this is at work. */
const BUSY_PERCENT = 5;

/** `5 of 8 busy`, `412 / 1,120 GiB`, `3,210 W`, the weightiest first; GPUs that do not answer are counted apart. */
export function summaryOf(gpus: readonly GpuState[]): string[] {
  const answering = gpus.flatMap((gpu) => (gpu.now?.health.state === 'ok' ? [gpu.now] : []));
  const asleep = gpus.filter((gpu) => gpu.now?.health.state === 'asleep').length;
  const silent = gpus.filter((gpu) => gpu.now !== null).length - answering.length - asleep;
  const parts: string[] = [];
  if (silent > 0) {
    parts.push(trans._n('%1 not responding', '%1 not responding', silent));
  }
  if (asleep > 0) {
    parts.push(trans._n('%1 asleep', '%1 asleep', asleep));
  }
  const worst = answering.map(({ conditions }) =>
    worstLevel(conditions.map(({ severity }) => severityLevel(severity))),
  );
  const critical = worst.filter((level) => level === 'critical').length;
  const warned = worst.filter((level) => level === 'warning').length;
  const counts = [
    critical > 0 ? trans._n('%1 critical', '%1 critical', critical) : '',
    warned > 0 ? trans._n('%1 with a warning', '%1 with warnings', warned) : '',
  ];
  if (critical + warned > 0) {
    parts.push(counts.filter((part) => part !== '').join(', '));
  }
  const utilization = answering.map((gpu) => valueOf(gpu.utilization.gpu_percent));
  if (utilization.some((value) => value !== null)) {
    const busy = utilization.filter((value) => (value ?? 0) > BUSY_PERCENT).length;
    const several = trans._n('%1 of %2 busy', '%1 of %2 busy', busy, gpus.length);
    parts.push(gpus.length > 1 ? several : busy === 1 ? trans.__('busy') : trans.__('idle'));
  }
  const used = sum(answering.map((gpu) => valueOf(gpu.memory.used_bytes)));
  const total = sum(answering.map((gpu) => valueOf(gpu.memory.total_bytes)));
  if (used !== null && total !== null) {
    parts.push(`${memoryNumber(used)} ${memoryTotal(total)}`);
  }
  const power = sum(answering.map((gpu) => valueOf(gpu.power.draw_watts)));
  if (power !== null) {
    parts.push(watts(power));
  }
  return parts;
}

/** The sum; `null` where a part is missing, since a sum of the rest would be wrong. */
function sum(values: readonly (number | null)[]): number | null {
  return values.length === 0
    ? null
    : values.reduce((total, value) => (total === null || value === null ? null : total + value), 0);
}
