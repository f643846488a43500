/** What holders of GPU memory are called. */

import { plainText } from '../lib/text';
import { textOf, type HolderRow } from './holders';
import { valueOf } from './reading';

/** The kernel of a notebook of this place; `null` where somebody else holds it. */
export function ownKernel({ notebook, isOwn }: HolderRow): string | null {
  return isOwn ? (notebook?.kernel_id ?? null) : null;
}

/**
 * Returns a holder's name, with its user unless it is a notebook of this Jupyter server:
 * `train.ipynb`, `vllm (bob)`.
 */
export function holderName(row: HolderRow): string {
  if (row.isOwn) {
    return row.name;
  }
  const user = textOf(row.processes[0].user);
  return user.reason === null ? `${row.name} (${plainText(user.text, 32)})` : row.name;
}

/** What it holds; 0 where that is not known. */
export function heldBytes(row: HolderRow): number {
  return valueOf(row.memory_bytes) ?? 0;
}
