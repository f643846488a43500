/** Processes: rows of the list, and segments of the memory bars. */

import { plainText } from '../lib/text';
import type { Process, Reading } from '../wire';
import type { GpuView } from './gpu';
import { migName, notebookName } from './owner';
import { absenceOf, valueOf } from './reading';
import { absenceWords } from './words';

export interface ProcessRow {
  kind: 'process';
  /** GPU and process: a PID alone is used again, and may hold several GPUs. */
  key: string;
  gpu: number;
  slot: number;
  process: Process;
  name: string;
}

/** Stands for the processes of a GPU that cannot be told. */
export interface UnreadableRow {
  kind: 'unreadable';
  key: string;
  gpu: number;
  reason: string;
}

/** The colours that tell the processes of one GPU apart: `--gpumon-process-0` and so on. */
export const SLOTS = 6;

/** Gives each process of a GPU a colour that it keeps as long as it runs. */
export class SlotKeeper {
  private readonly slots = new Map<string, number>();

  /** The slot of each process of one GPU, in their order. */
  assign(gpu: number, processes: readonly Process[]): number[] {
    const prefix = `${String(gpu)} `;
    const keys = processes.map((process) => prefix + identity(process));
    const present = new Set(keys);
    const taken = new Set<number>();
    for (const [key, slot] of this.slots) {
      if (!key.startsWith(prefix)) {
        continue;
      }
      if (present.has(key)) {
        taken.add(slot);
      } else {
        this.slots.delete(key);
      }
    }
    return keys.map((key) => {
      let slot = this.slots.get(key);
      if (slot === undefined) {
        slot = 0;
        while (taken.has(slot)) {
          slot += 1;
        }
        taken.add(slot);
        this.slots.set(key, slot);
      }
      return slot % SLOTS;
    });
  }
}

/** The rows of the list: GPU by GPU, the largest holder of memory first. */
export function processRows(gpus: readonly GpuView[], slots: SlotKeeper): (ProcessRow | UnreadableRow)[] {
  return gpus.flatMap((gpu): (ProcessRow | UnreadableRow)[] => {
    if (gpu.now === null) {
      return [];
    }
    const reading = gpu.now.processes;
    const absence = absenceOf(reading);
    if (absence !== null) {
      // The card of a lost GPU says what has happened; its processes need no line of their own.
      return gpu.now.health.state === 'ok'
        ? [
            {
              kind: 'unreadable',
              key: `unreadable ${String(gpu.index)}`,
              gpu: gpu.index,
              reason: absenceWords(absence),
            },
          ]
        : [];
    }
    const processes = valueOf(reading) ?? [];
    const places = slots.assign(gpu.index, processes);
    return processes
      .map((process, i): ProcessRow => ({
        kind: 'process',
        key: `${String(gpu.index)} ${identity(process)}`,
        gpu: gpu.index,
        slot: places[i] ?? 0,
        process,
        name: processName(process),
      }))
      .sort((a, b) => held(b.process) - held(a.process) || a.process.pid - b.process.pid);
  });
}

/** What a process is called: its notebook, else its name, else its PID where the name cannot be told. */
export function processName(process: Process): string {
  const name = notebookName(process) ?? valueOf(process.name);
  return name === null || name.trim() === '' ? `PID ${String(process.pid)}` : plainText(name, 120);
}

/** A text reading as it is shown, and why it is a dash where it is one. */
export function textOf(reading: Reading<string>): { text: string; reason: string | null } {
  const absence = absenceOf(reading);
  return absence === null
    ? { text: plainText(valueOf(reading) ?? ''), reason: null }
    : { text: '–', reason: absenceWords(absence) };
}

function identity(process: Process): string {
  // A process that holds two MIG instances is listed once for each.
  const instance = process.mig === undefined ? '' : ` ${migName(process.mig)}`;
  return `${String(process.pid)} ${String(valueOf(process.started_ms) ?? '')} ${process.kind}${instance}`;
}

function held(process: Process): number {
  return valueOf(process.memory_bytes) ?? -1;
}
