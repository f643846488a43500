/** The colors of programs: the same on every GPU and in every view while others start or exit. */

/** The number of colors of processes (`--gpumon-process-0`), and of GPUs (`--gpumon-gpu-0`). */
export const COLORS = 12;
/** Slots from here on have the color of another, with a texture. */
const SLOTS = 2 * COLORS;

interface HolderOnGpus {
  holder: string;
  /** What keeps its color when it is started again. */
  program: string;
  gpus: readonly number[];
}

export class ColorSlots {
  /** Of each program that was ever seen, the longest ago first. */
  private readonly programs = new Map<string, number>();
  /** Of each holder that is present. */
  private holders = new Map<string, number>();
  /** The programs that are present. */
  private here: ReadonlySet<string> = new Set();

  /** The slot of each: that of its program, or another where one beside it on a GPU has that. */
  assign(present: readonly HolderOnGpus[]): Map<string, number> {
    const before = this.holders;
    this.here = new Set(present.map(({ program }) => program));
    this.holders = new Map(
      present.flatMap(({ holder }) =>
        before.has(holder) ? [[holder, before.get(holder) ?? 0]] : [],
      ),
    );
    for (const { holder, program, gpus } of present) {
      const own = this.ofProgram(program);
      if (!this.holders.has(holder)) {
        const beside = present.filter((other) => other.gpus.some((gpu) => gpus.includes(gpu)));
        this.holders.set(
          holder,
          firstFree(own, new Set(beside.map((other) => this.holders.get(other.holder)))),
        );
      }
    }
    return this.holders;
  }

  /** By its name, so that other pages mostly choose the same; colors before textures. */
  ofProgram(program: string): number {
    const known = this.programs.get(program);
    if (known !== undefined) {
      return known;
    }
    const gone = [...this.programs].find(([other]) => !this.here.has(other));
    if (this.programs.size >= SLOTS && gone !== undefined) {
      this.programs.delete(gone[0]);
    }
    const slot = firstFree(hash(program) % COLORS, new Set(this.programs.values()));
    this.programs.set(program, slot);
    return slot;
  }
}

/** From `slot` on, round all with one color each, then round those with a texture. */
function firstFree(slot: number, taken: ReadonlySet<number | undefined>): number {
  const round = Array.from({ length: COLORS }, (_, i) => (slot + i) % COLORS);
  const all =
    slot < COLORS ? [...round, ...round.map((color) => color + COLORS)] : [slot, ...round];
  return all.find((one) => !taken.has(one)) ?? slot;
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) {
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  }
  return value >>> 0;
}
