/** Which GPUs and holders are shown: those that match every word that somebody has typed. */

import { joined } from '../lib/text';
import { table, trans } from '../lib/translation';
import type { GpuState } from './gpu';
import { textOf, type HolderRow, type ListRow as Row } from './holders';
import { runsIn } from './owner';
import { valueOf } from './reading';

/** What words are compared with, besides what is read of GPUs and holders. */
export interface FilterFacts {
  isBusy: (gpu: GpuState) => boolean;
}

export interface Filtered {
  gpus: readonly GpuState[];
  rows: readonly Row[];
}

/** So many are enough to choose from. */
const SUGGESTED_MOST = 40;

/** Words with a meaning of their own, in the user's language. */
const WORDS = table(() => ({
  busy: trans.__('busy'),
  idle: trans.__('idle'),
  mine: trans.__('mine'),
}));

export function filtered(
  typed: string,
  gpus: readonly GpuState[],
  rows: readonly Row[],
  facts: FilterFacts,
): Filtered {
  const words = typed
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((word) => word !== '');
  if (words.length === 0) {
    return { gpus, rows };
  }
  const mine = ownUsers(rows);
  const { busy, idle, mine: own } = WORDS();
  const gpuMatches = (gpu: GpuState, word: string): boolean =>
    word === busy || word === idle
      ? facts.isBusy(gpu) === (word === busy)
      : String(gpu.index) === word ||
        (!isNumber(word) && gpu.fullName.toLowerCase().includes(word));
  const rowMatches = (row: Row, word: string): boolean => {
    if (row.kind !== 'holder') {
      return false;
    }
    if (word === own) {
      return row.isOwn || mine.has(textOf(row.processes[0].user).text);
    }
    return isNumber(word)
      ? row.processes.some(({ pid }) => String(pid) === word)
      : textsOf(row).toLowerCase().includes(word);
  };
  const shown = gpus.filter((gpu) => {
    const held = rows.filter((row) => row.gpu === gpu.index);
    return words.every(
      (word) => gpuMatches(gpu, word) || held.some((row) => rowMatches(row, word)),
    );
  });
  const byIndex = new Map(shown.map((gpu) => [gpu.index, gpu]));
  return {
    gpus: shown,
    rows: rows.filter((row) => {
      const gpu = byIndex.get(row.gpu);
      return (
        gpu !== undefined && words.every((word) => gpuMatches(gpu, word) || rowMatches(row, word))
      );
    }),
  };
}

/** What may be typed just now: the words with a meaning, then users, notebooks and programs. */
export function suggestions(rows: readonly Row[]): string[] {
  const { busy, idle, mine } = WORDS();
  const holders = rows.filter((row) => row.kind === 'holder');
  const users = holders
    .map((row) => textOf(row.processes[0].user))
    .filter(({ reason }) => reason === null);
  const names = holders.map((row) => row.name);
  const own = holders.some((row) => row.isOwn) ? [mine] : [];
  return [...new Set([...own, busy, idle, ...users.map(({ text }) => text), ...names])].slice(
    0,
    SUGGESTED_MOST,
  );
}

/** Who runs the notebooks of this place. */
function ownUsers(rows: readonly Row[]): Set<string> {
  const own = rows.filter((row) => row.kind === 'holder' && row.isOwn);
  const users = own.flatMap((row) =>
    row.kind === 'holder' ? [textOf(row.processes[0].user)] : [],
  );
  return new Set(users.filter(({ reason }) => reason === null).map(({ text }) => text));
}

function textsOf(row: HolderRow): string {
  const [first] = row.processes;
  const texts = [
    row.name,
    row.path,
    valueOf(row.notebook?.path),
    textOf(first.user).text,
    runsIn(first),
  ];
  return joined([...texts, valueOf(first.command)], '\n');
}

function isNumber(word: string): boolean {
  return /^\d+$/.test(word);
}
