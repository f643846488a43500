/**
 * What Xids mean. The server tells that in English; the texts of other languages are many, and are
 * loaded for them.
 */

import type { Xid } from '../wire/xids';

let table: readonly Xid[] = [];

/** To be called before anything is shown in another language. */
export async function loadXids(): Promise<void> {
  table = (await import('../wire/xids')).XIDS;
}

/**
 * `null` where what the server says is to be shown, as of a code that this version does not know.
 */
export function xidOf(code: number): Xid | null {
  return table.find(({ codes }) => codes.includes(code)) ?? null;
}
