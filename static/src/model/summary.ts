/** All GPUs in one line. */

import { gib, gibNumber, watts } from '../lib/format';
import type { GpuView } from './gpu';
import { valueOf } from './reading';

/** A GPU busier than this is at work. */
const BUSY_PERCENT = 5;

/** `5 of 8 busy`, `412 / 1,120 GiB`, `3,210 W`, the weightiest first; GPUs that do not answer are counted apart. */
export function summaryOf(gpus: readonly GpuView[]): string[] {
  const answering = gpus.flatMap((gpu) => (gpu.now?.health.state === 'ok' ? [gpu.now] : []));
  const missing = gpus.filter((gpu) => gpu.now !== null && gpu.now.health.state !== 'ok').length;
  const parts: string[] = [];
  if (missing > 0) {
    parts.push(`${String(missing)} not answering`);
  }
  const utilization = answering.map((gpu) => valueOf(gpu.utilization.gpu_percent));
  if (utilization.some((value) => value !== null)) {
    const busy = utilization.filter((value) => (value ?? 0) > BUSY_PERCENT).length;
    parts.push(gpus.length === 1 ? (busy === 1 ? 'busy' : 'idle') : `${String(busy)} of ${String(gpus.length)} busy`);
  }
  const used = sum(answering.map((gpu) => valueOf(gpu.memory.used_bytes)));
  const total = sum(answering.map((gpu) => valueOf(gpu.memory.total_bytes)));
  if (used !== null && total !== null) {
    parts.push(`${gibNumber(used)} / ${gib(total)}`);
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
