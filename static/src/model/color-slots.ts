/**
 * The colors of programs, which are the same on every GPU and in every view, and do not change when
 * other programs start or exit.
 */

/** The number of colors of processes (`--gpumon-process-0`) and of GPUs (`--gpumon-gpu-0`). */
export const COLOR_COUNT = 12;
/** The number of slots. The second half uses the same colors as the first, with a texture. */
const SLOT_COUNT = 2 * COLOR_COUNT;

interface HolderOnGpus {
  holder: string;
  /** The name of the program, which has the same color when it is restarted. */
  program: string;
  gpus: readonly number[];
}

export class ColorSlots {
  /** The slots of all programs, the oldest first. */
  private readonly programs = new Map<string, number>();
  /** The slots of the current holders, by holder ID. */
  private holders = new Map<string, number>();
  /** The programs that are currently running. */
  private here: ReadonlySet<string> = new Set();

  /**
   * Returns the slot of each holder. A holder gets the slot of its program, unless another holder
   * on the same GPU already uses that slot.
   */
  assignSlots(present: readonly HolderOnGpus[]): Map<string, number> {
    const before = this.holders;
    this.here = new Set(present.map(({ program }) => program));
    this.holders = new Map(
      present.flatMap(({ holder }) =>
        before.has(holder) ? [[holder, before.get(holder) ?? 0]] : [],
      ),
    );
    for (const { holder, program, gpus } of present) {
      const own = this.assignProgramSlot(program);
      if (!this.holders.has(holder)) {
        const neighbors = present.filter((other) => other.gpus.some((gpu) => gpus.includes(gpu)));
        this.holders.set(
          holder,
          findFreeSlot(own, new Set(neighbors.map((other) => this.holders.get(other.holder)))),
        );
      }
    }
    return this.holders;
  }

  /**
   * Returns the slot of a program. It is derived from the program's name, so that other pages
   * usually choose the same color. Slots without a texture are preferred.
   */
  assignProgramSlot(program: string): number {
    const known = this.programs.get(program);
    if (known !== undefined) {
      return known;
    }
    const gone = [...this.programs].find(([other]) => !this.here.has(other));
    if (this.programs.size >= SLOT_COUNT && gone !== undefined) {
      this.programs.delete(gone[0]);
    }
    const slot = findFreeSlot(hash(program) % COLOR_COUNT, new Set(this.programs.values()));
    this.programs.set(program, slot);
    return slot;
  }
}

/**
 * Returns `slot` if it is free, and otherwise another free slot. Plain colors are tried first, in
 * circular order from `slot` on. If `slot` is a plain color, colors with a texture are tried next.
 * If none of these is free, `slot` is returned.
 */
function findFreeSlot(slot: number, taken: ReadonlySet<number | undefined>): number {
  const round = Array.from({ length: COLOR_COUNT }, (_, i) => (slot + i) % COLOR_COUNT);
  const all =
    slot < COLOR_COUNT
      ? [...round, ...round.map((color) => color + COLOR_COUNT)]
      : [slot, ...round];
  return all.find((one) => !taken.has(one)) ?? slot;
}

/** Returns the FNV-1a hash of a text. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) {
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  }
  return value >>> 0;
}
