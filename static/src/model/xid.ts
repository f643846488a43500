/**
 * The meanings of Xids for pages in other languages than English, because the server sends only
 * English texts. The texts are long, so they are loaded only when needed.
 */

import type { Xid } from '../wire/xids';

let table: readonly Xid[] = [];

/** Loads the texts. It must be called before anything is shown in another language. */
export async function loadXids(): Promise<void> {
  table = (await import('../wire/xids')).XIDS;
}

/**
 * Returns the texts of an Xid, or `null` if the server's text must be shown: in English, or if this
 * version does not know the code.
 */
export function xidOf(code: number): Xid | null {
  return table.find(({ codes }) => codes.includes(code)) ?? null;
}
