/** A cell's cost as text. */

import { DASH, energy, memorySize, memoryNumber, precise } from '../lib/format';
import { joined } from '../lib/text';
import { trans } from '../lib/translation';
import type { CellCost } from './cell-cost';
import type { StoredCost } from './stored-cost';

/** One part of the line below a cell, with more of it on hover. */
export interface CellPart {
  id: 'elapsed' | 'gpu' | 'peak' | 'energy';
  text: string;
  /** Where a heading says what it is. */
  brief: string;
  title: string;
}

/** `12.4 s`, `GPU 9.8 s`, `peak 61.0 GiB (+8.2)`, `6.1 kJ`. */
export function describeCell(cost: CellCost): CellPart[] {
  const elapsed = precise(cost.ended_ms - cost.started_ms);
  const where = cost.gpus.map(String).join(', ');
  const title = trans.__('Elapsed time of the cell');
  const parts: CellPart[] = [{ id: 'elapsed', text: elapsed, brief: elapsed, title }];
  if (cost.gpu_ms !== null) {
    const brief = precise(cost.gpu_ms);
    parts.push({ id: 'gpu', text: trans.__('GPU %1', brief), brief, title: busyTitle(cost, where) });
  }
  if (cost.peak_bytes !== null) {
    const brief = `${memorySize(cost.peak_bytes)}${changed(cost.change_bytes)}`;
    parts.push({
      id: 'peak',
      text: trans.__('peak %1', brief),
      brief,
      title: trans.__('Peak memory of this notebook on GPU %1, and the change since the cell started', where),
    });
  }
  if (cost.joules !== null) {
    const own = energy(cost.joules);
    const text = cost.shared ? trans.__('%1 shared', own) : own;
    const title = cost.shared
      ? trans.__('Energy of GPU %1 while the cell ran, including other processes', where)
      : trans.__('Energy of GPU %1 while the cell ran', where);
    parts.push({ id: 'energy', text, brief: text, title });
  }
  return parts;
}

/** What is stored of an earlier run, in the same parts. */
export function describeStored({ gpus, ...cost }: StoredCost): CellPart[] {
  const where = joined(
    [...new Set(gpus)].map((name) => withCount(name, gpus)),
    ', ',
  );
  const title =
    where === ''
      ? trans.__('Earlier run, stored in the notebook')
      : trans.__('Earlier run on %1, stored in the notebook', where);
  const parts = describeCell({
    started_ms: 0,
    ended_ms: cost.duration_s * 1000,
    gpus: [],
    gpu_ms: cost.gpu_s === null ? null : cost.gpu_s * 1000,
    peak_bytes: cost.peak_memory_bytes,
    change_bytes: cost.memory_change_bytes,
    joules: cost.energy_joules,
    shared: cost.shared,
  });
  return parts.map((part) => ({ ...part, title }));
}

/** `NVIDIA H200`, or `2 × NVIDIA H200`. */
function withCount(name: string, names: readonly string[]): string {
  const count = names.filter((other) => other === name).length;
  return count === 1 ? name : `${count} × ${name}`;
}

function busyTitle({ gpus }: CellCost, where: string): string {
  return gpus.length > 1
    ? trans.__('Time in which kernels of this notebook ran on GPU %1, summed over GPUs, from driver samples', where)
    : trans.__('Time in which kernels of this notebook ran on GPU %1, from driver samples', where);
}

/** ` (+8.2)`; nothing where no more and no less is held. */
function changed(bytes: number | null): string {
  if (bytes === null) {
    return ` (${DASH})`;
  }
  const number = memoryNumber(Math.abs(bytes));
  return /[1-9]/.test(number) ? ` (${bytes < 0 ? '−' : '+'}${number})` : '';
}
