/** What holders of GPU memory are called. */

import { plainText } from '../lib/text';
import { textOf, type HolderRow } from './holders';
import { valueOf } from './reading';

/** What the notebook of a kernel is called now; `null` where the kernel is none of this place's. */
export type NameOf = (kernelId: string) => string | null;

/** The kernel of a notebook of this place; `null` where somebody else holds it. */
export function ownKernel(row: HolderRow, nameOf: NameOf): string | null {
  const id = row.notebook?.kernel_id;
  return id === undefined || nameOf(id) === null ? null : id;
}

/** A notebook of this place by its present name, anything else also by whose it is: `train.ipynb`, `vllm (bob)`. */
export function holderName(row: HolderRow, nameOf: NameOf): string {
  const own = ownKernel(row, nameOf);
  if (own !== null) {
    return plainText(nameOf(own) ?? row.name, 120);
  }
  const user = textOf(row.processes[0].user);
  return user.reason === null ? `${row.name} (${plainText(user.text, 32)})` : row.name;
}

/** What it holds; 0 where that is not known. */
export function heldBytes(row: HolderRow): number {
  return valueOf(row.memory_bytes) ?? 0;
}
