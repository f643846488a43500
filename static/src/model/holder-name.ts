/** The names of GPU memory holders. */

import { plainText } from '../lib/text';
import { textOf, type HolderRow } from './holders';
import { valueOf } from './reading';

/** Returns the kernel of a notebook on this Jupyter server, or `null` for other holders. */
export function notebookKernelId({ notebook, isOwn }: HolderRow): string | null {
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

/** Returns the memory of a holder in bytes, or 0 if it is unknown. */
export function holderBytes(row: HolderRow): number {
  return valueOf(row.memory_bytes) ?? 0;
}
