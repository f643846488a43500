/** Which GPUs and holders are shown: those that match every word that somebody has typed. */

import { joined } from '../lib/text';
import { table, trans } from '../lib/translation';
import type { GpuState } from './gpu';
import { ownKernel, type NameOf } from './holder-name';
import { textOf, type HolderRow, type ListRow as Row } from './holders';
import { runsIn } from './owner';
import { valueOf } from './reading';

/** What words are compared with, besides what is read of GPUs and holders. */
export interface FilterFacts {
  isBusy: (gpu: GpuState) => boolean;
  /** Tells the notebooks of this place from others. */
  nameOf: NameOf;
}

export interface Filtered {
  gpus: readonly GpuState[];
  rows: readonly Row[];
}

/** So many are enough to choose from. */
const SUGGESTED_MOST = 40;

/** Words with a meaning of their own, in the user's language. */
const WORDS = table(() => ({ busy: trans.__('busy'), idle: trans.__('idle'), mine: trans.__('mine') }));

export function filtered(typed: string, gpus: readonly GpuState[], rows: readonly Row[], facts: FilterFacts): Filtered {
  const words = typed
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((word) => word !== '');
  if (words.length === 0) {
    return { gpus, rows };
  }
  const mine = ownUsers(rows, facts.nameOf);
  const { busy, idle, mine: own } = WORDS();
  const gpuMatches = (gpu: GpuState, word: string): boolean =>
    word === busy || word === idle
      ? facts.isBusy(gpu) === (word === busy)
      : String(gpu.index) === word || (!isNumber(word) && gpu.fullName.toLowerCase().includes(word));
  const rowMatches = (row: Row, word: string): boolean => {
    if (row.kind !== 'holder') {
      return false;
    }
    if (word === own) {
      return ownKernel(row, facts.nameOf) !== null || mine.has(textOf(row.processes[0].user).text);
    }
    return isNumber(word)
      ? row.processes.some(({ pid }) => String(pid) === word)
      : textsOf(row, facts.nameOf).toLowerCase().includes(word);
  };
  const shown = gpus.filter((gpu) => {
    const held = rows.filter((row) => row.gpu === gpu.index);
    return words.every((word) => gpuMatches(gpu, word) || held.some((row) => rowMatches(row, word)));
  });
  const byIndex = new Map(shown.map((gpu) => [gpu.index, gpu]));
  return {
    gpus: shown,
    rows: rows.filter((row) => {
      const gpu = byIndex.get(row.gpu);
      return gpu !== undefined && words.every((word) => gpuMatches(gpu, word) || rowMatches(row, word));
    }),
  };
}

/** What may be typed just now: the words with a meaning, then users, notebooks and programs. */
export function suggestions(rows: readonly Row[], nameOf: NameOf): string[] {
  const { busy, idle, mine } = WORDS();
  const holders = rows.filter((row) => row.kind === 'holder');
  const users = holders.map((row) => textOf(row.processes[0].user)).filter(({ reason }) => reason === null);
  const names = holders.map((row) => nameOf(row.notebook?.kernel_id ?? '') ?? row.name);
  const own = holders.some((row) => ownKernel(row, nameOf) !== null) ? [mine] : [];
  return [...new Set([...own, busy, idle, ...users.map(({ text }) => text), ...names])].slice(0, SUGGESTED_MOST);
}

/** Who runs the notebooks of this place. */
function ownUsers(rows: readonly Row[], nameOf: NameOf): Set<string> {
  const own = rows.filter((row) => row.kind === 'holder' && ownKernel(row, nameOf) !== null);
  const users = own.flatMap((row) => (row.kind === 'holder' ? [textOf(row.processes[0].user)] : []));
  return new Set(users.filter(({ reason }) => reason === null).map(({ text }) => text));
}

function textsOf(row: HolderRow, nameOf: NameOf): string {
  const [first] = row.processes;
  const path = valueOf(row.notebook?.path);
  const texts = [row.name, nameOf(row.notebook?.kernel_id ?? ''), path, textOf(first.user).text, runsIn(first)];
  return joined([...texts, valueOf(first.command)], '\n');
}

function isNumber(word: string): boolean {
  return /^\d+$/.test(word);
}
