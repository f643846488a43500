/** All GPUs in one line. */

import { memoryNumber, memoryTotal, watts } from '../lib/format';
import { joined } from '../lib/text';
import { trans } from '../lib/translation';
import type { GpuSample } from '../wire';
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
  const worst = answering.map(({ conditions }) =>
    worstLevel(conditions.map(({ severity }) => severityLevel(severity))),
  );
  const critical = worst.filter((level) => level === 'critical').length;
  const warned = worst.filter((level) => level === 'warning').length;
  const used = sum(answering.map((gpu) => valueOf(gpu.memory.used_bytes)));
  const total = sum(answering.map((gpu) => valueOf(gpu.memory.total_bytes)));
  const power = sum(answering.map((gpu) => valueOf(gpu.power.draw_watts)));
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
    describeBusy(answering, gpus.length),
    used === null || total === null ? '' : `${memoryNumber(used)} ${memoryTotal(total)}`,
    power === null ? '' : watts(power),
  ].filter((part) => part !== '');
}

function describeBusy(answering: readonly GpuSample[], all: number): string {
  const utilization = answering.map((gpu) => valueOf(gpu.utilization.gpu_percent)).filter((value) => value !== null);
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
