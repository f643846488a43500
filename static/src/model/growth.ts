/** How fast the memory of those who hold a GPU grows. */

import { slopeOf } from '../lib/slope';
import type { HolderRow } from './holders';
import { valueOf } from './reading';

/** Somebody whose memory grows. */
export interface Grower {
  row: HolderRow;
  bytes_per_ms: number;
}

/** Growth is judged by this much of the past. */
export const TREND_MS = 30_000;
/** Less than this tells no growth of one holder. */
const LEAST_MS = 5000;
/** Samples that come faster add nothing. */
const STEP_MS = 500;

interface Past {
  times_ms: number[];
  bytes: number[];
}

/** Keeps the last half minute of what each holder has. It is given every sample, or those that come while it is needed. */
export class Growth {
  private pasts = new Map<string, Past>();
  private first_ms: number | null = null;
  private last_ms = 0;

  /** Whether it has been given enough to tell who grows. */
  get isReady(): boolean {
    return this.last_ms - (this.first_ms ?? this.last_ms) >= LEAST_MS + STEP_MS;
  }

  /** Takes in who holds what at this moment; whoever holds nothing any more is untranslated. */
  take(at_ms: number, rows: readonly HolderRow[]): void {
    const pasts = new Map<string, Past>();
    this.first_ms ??= at_ms;
    this.last_ms = at_ms;
    for (const { key, memory_bytes } of rows) {
      const bytes = valueOf(memory_bytes);
      if (bytes === null) {
        continue;
      }
      const past = this.pasts.get(key) ?? { times_ms: [], bytes: [] };
      pasts.set(key, past);
      if (at_ms - (past.times_ms.at(-1) ?? -Infinity) < STEP_MS) {
        continue;
      }
      past.times_ms.push(at_ms);
      past.bytes.push(bytes);
      const kept = past.times_ms.findIndex((time_ms) => time_ms >= at_ms - TREND_MS);
      past.times_ms.splice(0, kept);
      past.bytes.splice(0, kept);
    }
    this.pasts = pasts;
  }

  /** Those of `rows` that grow, the fastest first. */
  growers(rows: readonly HolderRow[]): Grower[] {
    return rows
      .map((row) => ({ row, bytes_per_ms: this.slope(row.key) }))
      .filter(({ bytes_per_ms }) => bytes_per_ms > 0)
      .sort((a, b) => b.bytes_per_ms - a.bytes_per_ms);
  }

  private slope(key: string): number {
    const past = this.pasts.get(key);
    const line = past === undefined ? null : slopeOf(past.times_ms, past.bytes, TREND_MS);
    return line === null || line.spanned_ms < LEAST_MS ? 0 : line.slope;
  }
}
