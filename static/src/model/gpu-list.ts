/**
 * The filter that selects GPUs for a list, and the order of the list: that of the driver, or by a
 * value.
 */

import { joinParts } from '../lib/text';
import { lazyTexts, trans } from '../lib/translation';
import { levelRank } from './alerts';
import type { Level } from './describe';
import type { GpuState } from './gpu';
import { textOf, type HolderRow, type ListRow as Row } from './holders';
import { unavailableBytes } from './memory';
import { describeOwner } from './owner';
import { valueOf } from './reading';

/**
 * Functions that return what the words of a filter need to know about a GPU in addition to its
 * readings.
 */
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
export function hasLevelWord(typed: string, level: AlertLevel): boolean {
  return wordsIn(typed).includes(KEYWORDS()[level]);
}

/** Adds the word of a level to a filter, or removes it if the filter already contains it. */
export function toggleLevelWord(typed: string, level: AlertLevel): string {
  const word = KEYWORDS()[level];
  return hasLevelWord(typed, level)
    ? wordsIn(typed)
        .filter((one) => one !== word)
        .join(' ')
    : joinParts([typed.trim(), word], ' ');
}

/**
 * Removes all words from a filter except those that select alert levels. Short lists have no filter
 * field, but users can still select alert levels there.
 */
export function removeWordsExceptLevels(typed: string): string {
  return ALERT_LEVELS.filter((level) => hasLevelWord(typed, level))
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
  const holders = rows.filter((row) => row.kind === 'holder');
  // These are the users of this Jupyter server's notebooks.
  const mine = listUsers(holders.filter(({ isOwn }) => isOwn));
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
      return row.isOwn || mine.includes(textOf(row.processes[0].user).text);
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
export function gpuFilterSuggestions(rows: readonly Row[]): string[] {
  const { mine, ...others } = KEYWORDS();
  const holders = rows.filter((row) => row.kind === 'holder');
  const names = holders.map((row) => row.name);
  const own = holders.some((row) => row.isOwn) ? [mine] : [];
  const words = [...own, ...Object.values(others), ...listUsers(holders), ...names];
  return [...new Set(words)].slice(0, MAX_SUGGESTIONS);
}

/** Returns the known users of the holders. */
function listUsers(holders: readonly HolderRow[]): string[] {
  return holders
    .map((row) => textOf(row.processes[0].user))
    .filter(({ reason }) => reason === null)
    .map(({ text }) => text);
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

/** The columns by which a list of GPUs can be sorted. */
export const SORT_KEYS = ['index', 'use', 'mem', 'temp', 'power', 'state'] as const;
export type SortKey = (typeof SORT_KEYS)[number];

/** An order by values is kept for this many milliseconds. */
const KEPT_MS = 5000;

export interface Order {
  by: SortKey;
  direction: 'ascending' | 'descending';
}

/** Parses a stored order such as `mem:descending`. `null` stands for the driver's order. */
export function parseOrder(text: string | null): Order | null {
  // Version 0.2 stored `worst` for the order by state.
  const [name, direction] = (text === 'worst' ? 'state' : (text ?? '')).split(':');
  const by = SORT_KEYS.find((key) => key === name);
  return by === undefined
    ? null
    : { by, direction: direction === 'ascending' ? direction : 'descending' };
}

export function formatOrder(order: Order | null): string | null {
  return order === null ? null : `${order.by}:${order.direction}`;
}

/**
 * Returns the order after a click on a column. Successive clicks select the descending order, the
 * ascending order, and the driver's order.
 */
export function orderAfterClick(order: Order | null, by: SortKey): Order | null {
  if (order?.by !== by) {
    return { by, direction: 'descending' };
  }
  return order.direction === 'descending' && by !== 'index' ? { by, direction: 'ascending' } : null;
}

/** Sorts GPUs. An order by values is kept for a while, because values change with each sample. */
export class GpuSorter {
  private last: { key: string; indices: readonly number[] } = { key: '', indices: [] };

  /** Returns the GPUs in order. Equal GPUs are in the driver's order. */
  sort(
    gpus: readonly GpuState[],
    order: Order | null,
    levelOf: (gpu: GpuState) => Level,
    now_ms: number,
  ): readonly GpuState[] {
    if (order === null) {
      return gpus;
    }
    const turn = order.by === 'state' ? now_ms : Math.floor(now_ms / KEPT_MS);
    const key = [turn, formatOrder(order), ...gpus.map(({ index }) => index)].join();
    if (key !== this.last.key) {
      this.last = { key, indices: sortGpus(gpus, order, levelOf).map(({ index }) => index) };
    }
    const byIndex = new Map(gpus.map((gpu) => [gpu.index, gpu]));
    return this.last.indices.flatMap((index) => byIndex.get(index) ?? []);
  }
}

/** Sorts GPUs by a value. GPUs without a value come last. */
function sortGpus(
  gpus: readonly GpuState[],
  { by, direction }: Order,
  levelOf: (gpu: GpuState) => Level,
): GpuState[] {
  const sign = direction === 'ascending' ? 1 : -1;
  return gpus
    .map((gpu) => [readSortValue(gpu, by, levelOf), gpu] as const)
    .sort(([a], [b]) =>
      a === null || b === null ? Number(a === null) - Number(b === null) : sign * (a - b),
    )
    .map(([, gpu]) => gpu);
}

function readSortValue(
  gpu: GpuState,
  by: SortKey,
  levelOf: (gpu: GpuState) => Level,
): number | null {
  const { now } = gpu;
  switch (by) {
    case 'index':
      return gpu.index;
    case 'state':
      return -levelRank(levelOf(gpu));
    case 'use':
      return valueOf(now?.utilization.gpu_percent);
    case 'mem':
      return now && unavailableBytes(now);
    case 'temp':
      return valueOf(now?.temperature.gpu_celsius);
    case 'power':
      return valueOf(now?.power.draw_watts);
  }
}
