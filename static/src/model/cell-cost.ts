/** What the run of a notebook's cell took of the GPUs: reckoned from samples, for the kernel and all it has started. */

import type { Sample } from '../wire';
import { EnergyMeter, type PowerTraces } from './cell-energy';
import { shareOf, type KernelShare } from './kernel-share';

export interface CellCost {
  started_ms: number;
  ended_ms: number;
  /** The GPUs that the kernel held, by index. */
  gpus: readonly number[];
  /** Time in which its kernels ran, summed over GPUs; `null` where the driver does not tell. */
  gpu_ms: number | null;
  /** The most memory it held at once, over all GPUs; `null` where the driver does not tell. */
  peak_bytes: number | null;
  /** How much more, or less, it held after the run than before. */
  change_bytes: number | null;
  /** Energy of the GPUs that it held, with what others did there; `null` where power is not told. */
  joules: number | null;
  /** Whether others held one of those GPUs at the same time, so that not all of the energy is the cell's. */
  shared: boolean;
}

/** A run that is shorter, computes less and changes no more than this is not worth a line. */
const BRIEF_MS = 500;
const LITTLE_GPU_MS = 10;
const LITTLE_BYTES = 64 * 1024 ** 2;

/** Whether a run took enough of a GPU that somebody may want to know; one that only lasted took nothing. */
export function isWorthShowing({ started_ms, ended_ms, gpu_ms, change_bytes }: CellCost): boolean {
  const computed = ended_ms - started_ms >= BRIEF_MS && (gpu_ms ?? Infinity) >= LITTLE_GPU_MS;
  return computed || Math.abs(change_bytes ?? 0) >= LITTLE_BYTES;
}

/**
 * Watches one run of a cell. It is given every sample, and is done with the first after the end; the driver's records of
 * power, which come later, then make its energy exact.
 */
export class CellMeter {
  private ended_ms = Infinity;
  private last: KernelShare | null;
  /** The sample of `last`, which tells of all GPUs. */
  private lastSample: Sample | null;
  private readonly before_bytes: number;
  private readonly gpus = new Set<number>();
  private peak_bytes: number | null = null;
  private after_bytes: number | null = null;
  private gpu_ms: number | null = null;
  private readonly energy = new EnergyMeter();
  private shared = false;
  private finished = false;

  /** `before` is the newest sample before the run; times are the kernel's machine's. */
  constructor(
    private readonly kernelId: string,
    private readonly started_ms: number,
    before: Sample | null,
  ) {
    this.lastSample = before;
    this.last = before === null ? null : shareOf(before, kernelId);
    this.before_bytes = this.last?.bytes ?? 0;
  }

  /** The run is over; its last part is known with the next sample. */
  end(ended_ms: number): void {
    this.ended_ms = Math.max(this.started_ms, ended_ms);
  }

  /** Takes in a sample, and says whether nothing more is needed. */
  addSample(sample: Sample): boolean {
    if (this.finished || sample.at_ms <= (this.last?.at_ms ?? this.started_ms)) {
      return this.finished;
    }
    const share = shareOf(sample, this.kernelId);
    this.addTime(share, sample);
    // What a run shorter than the time between samples held is only seen after it.
    if (share.at_ms <= this.ended_ms || this.peak_bytes === null) {
      this.peak_bytes = most(this.peak_bytes, share.bytes);
    }
    this.after_bytes = share.bytes ?? 0;
    [this.last, this.lastSample] = [share, sample];
    this.finished = share.at_ms >= this.ended_ms;
    return this.finished;
  }

  /** Whether the run is over, and all of it seen. */
  get isFinished(): boolean {
    return this.finished;
  }

  /** Whether the driver's records tell all of the energy. */
  isRecorded(traces: PowerTraces): boolean {
    return this.energy.isRecorded(traces);
  }

  /** The cost; `null` where the kernel holds no GPU, or nothing was seen of it. */
  cost(traces: PowerTraces): CellCost | null {
    if (this.gpus.size === 0) {
      return null;
    }
    return {
      started_ms: this.started_ms,
      ended_ms: Math.min(this.ended_ms, this.last?.at_ms ?? this.started_ms),
      gpus: [...this.gpus].sort((a, b) => a - b),
      gpu_ms: this.gpu_ms,
      peak_bytes: most(this.peak_bytes, this.before_bytes > 0 ? this.before_bytes : null),
      change_bytes: this.after_bytes === null ? null : this.after_bytes - this.before_bytes,
      joules: this.energy.joules(traces),
      shared: this.shared,
    };
  }

  /** A sample tells about the time since the one before; only that part counts in which the cell ran. */
  private addTime(share: KernelShare, sample: Sample): void {
    const from_ms = Math.max(this.started_ms, this.last?.at_ms ?? this.started_ms);
    const span_ms = Math.min(share.at_ms, this.ended_ms) - from_ms;
    if (span_ms <= 0 || share.gpus.length === 0) {
      return;
    }
    for (const now of sample.gpus.filter(({ index }) => share.gpus.includes(index))) {
      this.gpus.add(now.index);
      const before = this.lastSample?.gpus.find(({ index }) => index === now.index);
      this.energy.add(now, before, from_ms, from_ms + span_ms);
    }
    if (share.sm_percent !== null) {
      this.gpu_ms = (this.gpu_ms ?? 0) + (share.sm_percent / 100) * span_ms;
    }
    this.shared ||= share.shared;
  }
}

function most(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}
