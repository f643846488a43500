/** The filter for GPUs and holders, which keeps those that match every word. */

import { joinParts } from '../lib/text';
import { lazyTexts, trans } from '../lib/translation';
import type { Level } from './describe';
import type { GpuState } from './gpu';
import { textOf, type HolderRow, type ListRow as Row } from './holders';
import { describeOwner } from './owner';
import { valueOf } from './reading';

/** Values of GPUs that words are compared with, in addition to the readings. */
export interface FilterContext {
  isBusy: (gpu: GpuState) => boolean;
  /** Returns the level of a GPU's most severe alert. */
  levelOf: (gpu: GpuState) => Level;
}

export interface FilteredGpus {
  gpus: readonly GpuState[];
  rows: readonly Row[];
}

const MAX_SUGGESTIONS = 40;

/** The keywords in the user's language. */
const KEYWORDS = lazyTexts(() => ({
  busy: trans.__('busy'),
  idle: trans.__('idle'),
  critical: trans.__('critical'),
  warning: trans.__('warning'),
  mine: trans.__('mine'),
}));

/** The levels that a filter can select. */
export const ALERT_LEVELS = ['critical', 'warning'] as const;
export type AlertLevel = (typeof ALERT_LEVELS)[number];

/** Returns whether a filter selects GPUs with an alert of this level. */
export function selectsLevel(typed: string, level: AlertLevel): boolean {
  return wordsIn(typed).includes(KEYWORDS()[level]);
}

/** Adds the word of a level to a filter, or removes it if it is there. */
export function toggleLevel(typed: string, level: AlertLevel): string {
  const word = KEYWORDS()[level];
  return selectsLevel(typed, level)
    ? wordsIn(typed)
        .filter((one) => one !== word)
        .join(' ')
    : joinParts([typed.trim(), word], ' ');
}

/**
 * Removes all words from a filter except those that select levels. Levels can also be selected in
 * lists that are too short for a filter field.
 */
export function keepLevelWords(typed: string): string {
  return ALERT_LEVELS.filter((level) => selectsLevel(typed, level))
    .map((level) => KEYWORDS()[level])
    .join(' ');
}

function wordsIn(typed: string): string[] {
  return typed
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((word) => word !== '');
}

export function filterGpus(
  typed: string,
  gpus: readonly GpuState[],
  rows: readonly Row[],
  facts: FilterContext,
): FilteredGpus {
  const words = wordsIn(typed);
  if (words.length === 0) {
    return { gpus, rows };
  }
  const mine = listNotebookUsers(rows);
  const { busy, idle, critical, warning, mine: own } = KEYWORDS();
  const gpuMatches = (gpu: GpuState, word: string): boolean => {
    switch (word) {
      case busy:
        return facts.isBusy(gpu);
      case idle:
        return gpu.now?.health.state === 'ok' && !facts.isBusy(gpu);
      case critical:
      case warning:
        return facts.levelOf(gpu) === (word === critical ? 'critical' : 'warning');
      default:
        return (
          String(gpu.index) === word ||
          (!isNumber(word) && gpu.fullName.toLowerCase().includes(word))
        );
    }
  };
  const rowMatches = (row: Row, word: string): boolean => {
    if (row.kind !== 'holder') {
      return false;
    }
    if (word === own) {
      return row.isOwn || mine.has(textOf(row.processes[0].user).text);
    }
    return isNumber(word)
      ? row.processes.some(({ pid }) => String(pid) === word)
      : joinSearchTexts(row).toLowerCase().includes(word);
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

/** Returns suggestions for the filter: keywords, then users, notebooks and programs. */
export function suggestions(rows: readonly Row[]): string[] {
  const { mine, ...others } = KEYWORDS();
  const holders = rows.filter((row) => row.kind === 'holder');
  const users = holders
    .map((row) => textOf(row.processes[0].user))
    .filter(({ reason }) => reason === null);
  const names = holders.map((row) => row.name);
  const own = holders.some((row) => row.isOwn) ? [mine] : [];
  const words = [...own, ...Object.values(others), ...users.map(({ text }) => text), ...names];
  return [...new Set(words)].slice(0, MAX_SUGGESTIONS);
}

/** Returns the users of this Jupyter server's notebooks. */
function listNotebookUsers(rows: readonly Row[]): Set<string> {
  const own = rows.filter((row) => row.kind === 'holder' && row.isOwn);
  const users = own.flatMap((row) =>
    row.kind === 'holder' ? [textOf(row.processes[0].user)] : [],
  );
  return new Set(users.filter(({ reason }) => reason === null).map(({ text }) => text));
}

function joinSearchTexts(row: HolderRow): string {
  const [first] = row.processes;
  const texts = [
    row.name,
    row.path,
    valueOf(row.notebook?.path),
    textOf(first.user).text,
    describeOwner(first),
  ];
  return joinParts([...texts, valueOf(first.command)], '\n');
}

function isNumber(word: string): boolean {
  return /^\d+$/.test(word);
}
