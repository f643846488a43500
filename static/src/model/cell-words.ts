/** A cell's cost in words. */

import { DASH, energy, memorySize, memoryNumber, precise } from '../lib/format';
import type { CellCost } from './cell-cost';

/** One part of the line below a cell, with more of it on hover. */
export interface CellWord {
  id: 'elapsed' | 'gpu' | 'peak' | 'energy';
  text: string;
  title: string;
}

/** `12.4 s`, `GPU 9.8 s`, `peak 61.0 GiB (+8.2)`, `6.1 kJ`. */
export function cellWords(cost: CellCost): CellWord[] {
  const elapsed_ms = cost.ended_ms - cost.started_ms;
  const where = `GPU ${cost.gpus.map(String).join(', ')}`;
  const words: CellWord[] = [
    { id: 'elapsed', text: precise(elapsed_ms), title: 'from the start of the cell to its end' },
  ];
  if (cost.gpu_ms !== null) {
    const several = cost.gpus.length > 1 ? ', added up over GPUs' : '';
    const title = `time in which kernels of this notebook ran on ${where}${several}, by the driver's samples`;
    words.push({ id: 'gpu', text: `GPU ${precise(cost.gpu_ms)}`, title });
  }
  if (cost.peak_bytes !== null) {
    words.push({
      id: 'peak',
      text: `peak ${memorySize(cost.peak_bytes)}${changed(cost.change_bytes)}`,
      title: `the most memory of ${where} that this notebook held at once, and how much more it holds now than before`,
    });
  }
  if (cost.joules !== null) {
    const title = cost.shared
      ? `energy of ${where} while the cell ran, with what others did there`
      : `energy of ${where} while the cell ran`;
    words.push({ id: 'energy', text: `${energy(cost.joules)}${cost.shared ? ' shared' : ''}`, title });
  }
  return words;
}

/** ` (+8.2)`; nothing where no more and no less is held. */
function changed(bytes: number | null): string {
  if (bytes === null) {
    return ` (${DASH})`;
  }
  const number = memoryNumber(Math.abs(bytes));
  return /[1-9]/.test(number) ? ` (${bytes < 0 ? '−' : '+'}${number})` : '';
}
