/**
 * The filter for GPUs, which keeps the GPUs that match every word. This filter and the terminal's
 * are tested with the same cases in `fleet/filter-cases.json`.
 */

import { findOwnProperty } from '../../lib/collections';
import { units } from '../../lib/format';
import { lazyTexts, trans } from '../../lib/translation';
import type { FleetOwner, GpuState } from '../../wire';
import { isCritical, type Columns, type Measures, type Readings } from './columns';
import { conditionName } from './describe';

export interface Filter {
  /**
   * Returns an array with 1 for each visible row and 0 for the others, or `null` if all rows are
   * visible.
   */
  match: (columns: Columns) => Uint8Array | null;
  /**
   * Whether the filter has no valid words, because nothing was typed or all words are unfinished or
   * mistyped.
   */
  isEmpty: boolean;
  /**
   * Returns a function that tests a GPU together with one of its owners, both given by index.
   * Filter words about owners must match this owner, even if another owner of the GPU matches.
   */
  matchHolds: (columns: Columns) => (row: number, owner: number) => boolean;
  /**
   * Returns whether the names of an owner match every filter word. If the filter has a word that is
   * not about names, the result is `false`.
   */
  names: (owner: FleetOwner) => boolean;
  /** Error messages about ignored words. */
  mistakes: readonly string[];
}

/** Returns a function that tests a row regardless of the row's owners. */
type RowMatcher = (columns: Columns) => (row: number) => boolean;

/** The tests of a filter word. It may match a GPU, its owners, or both. */
interface WordMatcher {
  device: RowMatcher | null;
  owner: ((owner: FleetOwner) => boolean) | null;
}

interface Word extends WordMatcher {
  isExcluded: boolean;
}

/** The comparison behind the word `hot`. */
const HOT_FILTER = 'temperature>=80c';

/** The words for states and comparisons, in English and in the user's language. */
const STATES = lazyTexts((): Record<string, RowMatcher | string> => {
  const inState =
    (...states: GpuState[]): RowMatcher =>
    ({ state }) =>
    (row) =>
      states.includes(state[row] ?? 'unknown');
  const critical: RowMatcher = (columns) => (row) => isCritical(columns, row);
  const words: [english: string, translated: string, test: RowMatcher | string][] = [
    ['busy', trans.__('busy'), inState('busy')],
    ['idle', trans.__('idle'), inState('idle')],
    ['free', trans.__('free'), inState('free')],
    ['held', trans.__('held'), inState('busy', 'idle')],
    ['lost', trans.__('lost'), inState('lost', 'unknown')],
    ['critical', trans.__('critical'), critical],
    ['hot', trans.__('hot'), HOT_FILTER],
  ];
  return Object.fromEntries(
    ([0, 1] as const).flatMap((at) => words.map((one) => [one[at], one[2]])),
  );
});

type OwnerNames = (owner: FleetOwner) => readonly (string | null)[];

const ALL_NAMES: OwnerNames = ({ user, id, namespace }) => [user, id, namespace];

/**
 * The fields of a filter, by the name that is written before a colon. Owner names must be equal to
 * the text, because one name can contain another.
 */
const FIELDS: Readonly<Record<string, (text: string) => WordMatcher>> = {
  node: (text) => ({ device: matchNodeNames(matchEqualOrContainingNames(text)), owner: null }),
  gpu: (text) => ({ device: matchModels(matchEqualOrContainingNames(text)), owner: null }),
  user: makeOwnerFieldParser(({ user }) => [user]),
  job: makeOwnerFieldParser(({ kind, id }) => (kind === 'user' || kind === 'notebook' ? [] : [id])),
  notebook: makeOwnerFieldParser(({ kind, id }) => (kind === 'notebook' ? [id] : [])),
  namespace: makeOwnerFieldParser(({ namespace }) => [namespace]),
  condition: (text) => ({ device: matchConditions(matchContainingNames(text)), owner: null }),
};

/** Returns the words for the filter's suggestions, except names. */
export function fleetFilterSuggestions(): string[] {
  return [
    ...Object.keys(STATES()),
    ...Object.keys(FIELDS).map((field) => `${field}:`),
    'memory>80GiB',
    'power<100W',
  ];
}

export function parseFilter(typed: string): Filter {
  const mistakes: string[] = [];
  const words: Word[] = [];
  for (const one of splitFilterWords(typed.toLowerCase())) {
    const text = removeQuotes(one);
    const isExcluded = /^[-!]./.test(text);
    const word = parseWord(isExcluded ? text.slice(1) : text, mistakes);
    if (word !== null) {
      words.push({ ...word, isExcluded });
    }
  }
  const testsOf = (columns: Columns): ReturnType<typeof testsOfWord>[] =>
    words.map((word) => testsOfWord(word, columns));
  return {
    mistakes,
    isEmpty: words.length === 0,
    matchHolds: (columns) => {
      const tests = testsOf(columns);
      return (row, owner) => tests.every(({ holds }) => holds(row, owner));
    },
    match: (columns) => {
      if (words.length === 0) {
        return null;
      }
      const tests = testsOf(columns);
      const shown = new Uint8Array(columns.count);
      return shown.map((_, row) => (tests.every(({ match }) => match(row)) ? 1 : 0));
    },
    names: (one) =>
      words.every(({ owner, isExcluded }) => owner !== null && owner(one) !== isExcluded),
  };
}

/**
 * Returns two tests for a filter word. `match` returns whether the word matches a row with any of
 * its owners, and `holds` whether it matches a row with one particular owner.
 */
function testsOfWord(
  { device, owner, isExcluded }: Word,
  columns: Columns,
): { match: (row: number) => boolean; holds: (row: number, owner: number) => boolean } {
  const matches = device?.(columns);
  const isNamed = owner === null ? [] : columns.fleet.owners.map(owner);
  const hasNamed = (row: number): boolean =>
    isNamed.length > 0 && columns.ownersOf(row).some((place) => isNamed[place] === true);
  return {
    match: (row) => (matches?.(row) === true || hasNamed(row)) !== isExcluded,
    holds: (row, place) => (matches?.(row) === true || isNamed[place] === true) !== isExcluded,
  };
}

/** Returns the filter word that selects `name` in `field`, such as `user:ana`. */
export function formatFieldWord(
  field: 'user' | 'job' | 'notebook' | 'namespace',
  name: string,
): string {
  const text = removeQuotes(name);
  return `${field}:${/[\s,]/.test(text) ? `"${text}"` : text}`.toLowerCase();
}

/** Adds a word to the filter, or removes it if it is already there. */
export function toggleWord(typed: string, word: string): string {
  const words = splitFilterWords(typed);
  return (words.includes(word) ? words.filter((one) => one !== word) : [...words, word]).join(' ');
}

export function hasWord(typed: string, word: string): boolean {
  return splitFilterWords(typed).includes(word);
}

/** Splits the filter at spaces and commas, except inside quotes. */
function splitFilterWords(typed: string): string[] {
  return typed.match(/(?:"[^"]*"?|[^\s,"])+/g) ?? [];
}

function removeQuotes(text: string): string {
  return text.replaceAll('"', '');
}

function parseWord(typed: string, mistakes: string[]): WordMatcher | null {
  if (typed === '') {
    return null;
  }
  const state = findOwnProperty(STATES(), typed);
  const compared = parseComparison(typeof state === 'string' ? state : typed);
  if (compared !== null) {
    if ('mistake' in compared) {
      mistakes.push(compared.mistake);
      return null;
    }
    return { device: (columns) => (row) => compared.test(columns, row), owner: null };
  }
  if (typeof state === 'function') {
    return { device: state, owner: null };
  }
  const [, name = '', text = ''] = /^([a-z]+):(.*)$/.exec(typed) ?? [];
  const field = findOwnProperty(FIELDS, name);
  if (field !== undefined) {
    // A word without text after the colon is still being typed, so it matches everything.
    return text === '' ? null : field(text);
  }
  // A colon before a digit may be the port in the name of a node.
  if (name !== '' && !/^\d/.test(text)) {
    const fields = Object.keys(FIELDS).map((known) => `${known}:`);
    mistakes.push(
      trans.__('%1: unknown field %2. Valid fields: %3.', typed, name, fields.join(', ')),
    );
    return null;
  }
  const choice = matchContainingNames(typed);
  return {
    device: (columns) => {
      const tests = [matchNodeNames, matchModels, matchConditions].map((match) =>
        match(choice)(columns),
      );
      return (row) => tests.some((test) => test(row));
    },
    owner: matchOwnerNames(ALL_NAMES, choice),
  };
}

function makeOwnerFieldParser(names: OwnerNames): (text: string) => WordMatcher {
  return (text) => ({ device: null, owner: matchOwnerNames(names, matchEqualNames(text)) });
}

function matchOwnerNames(names: OwnerNames, choice: NameMatcher): (owner: FleetOwner) => boolean {
  return (owner) => choice(names(owner).filter((name) => name !== null)).includes(true);
}

/**
 * Returns for each name whether it matches. A name is tested only once, even if it belongs to many
 * rows.
 */
type NameMatcher = (names: readonly string[]) => boolean[];

function matchContainingNames(text: string): NameMatcher {
  return (names) => names.map((name) => normalizeName(name).includes(text));
}

function matchEqualNames(text: string): NameMatcher {
  return (names) => names.map((name) => normalizeName(name) === text);
}

/**
 * Returns a matcher for names that are equal to the text. If no name is equal, it matches names
 * that contain the text.
 */
function matchEqualOrContainingNames(text: string): NameMatcher {
  return (names) => {
    const exact = matchEqualNames(text)(names);
    return exact.includes(true) ? exact : matchContainingNames(text)(names);
  };
}

/**
 * Normalizes a name for comparison. Quotes are removed, because they only keep the parts of a word
 * together.
 */
function normalizeName(name: string): string {
  return removeQuotes(name).toLowerCase();
}

function matchNodeNames(choice: NameMatcher): RowMatcher {
  return ({ nodeNames, node }) => {
    const found = choice(nodeNames);
    return (row) => found[node[row] ?? -1] === true;
  };
}

function matchModels(choice: NameMatcher): RowMatcher {
  return ({ models, fleet }) => {
    const found = choice(models);
    return (row) => found[fleet.gpus.model[row] ?? -1] === true;
  };
}

function matchConditions(choice: NameMatcher): RowMatcher {
  return ({ fleet, conditionsOf }) => {
    const kinds = [...new Set(fleet.conditions.map(({ kind }) => kind))];
    const [byName, byText] = [choice(kinds), choice(kinds.map(conditionName))];
    const found = new Set(kinds.filter((_, i) => byName[i] === true || byText[i] === true));
    return (row) => conditionsOf(row).some(({ kind }) => found.has(kind));
  };
}

/**
 * A filter word that compares a reading with a number: `memory>80GiB`, `utilization<10`,
 * `idle>=1h`.
 */
type Comparison =
  | { test: (measures: Measures, row: number) => boolean }
  /** The problem with the word, and how to fix it. */
  | { mistake: string };

const COMPARISON_PATTERN = /^([a-z]+)(>=|<=|>|<|=)(.*)$/;

const GIB = 1024 ** 3;
const BYTE_UNITS = {
  '': GIB,
  b: 1,
  kib: 1024,
  kb: 1e3,
  mib: 1024 ** 2,
  mb: 1e6,
  gib: GIB,
  g: GIB,
  gb: 1e9,
  tib: 1024 ** 4,
  tb: 1e12,
} as const;

interface Quantity {
  read: (measures: Measures, row: number) => number;
  units: Readonly<Record<string, number>>;
  /** The units that an error message lists. */
  known: readonly string[];
  /** The value that counts as 100 %. Without it, `%` is not a valid unit. */
  limit?: keyof Readings;
}

/** The units and the limit of quantities of memory. */
const MEMORY_QUANTITY: Omit<Quantity, 'read'> = {
  units: BYTE_UNITS,
  known: ['%', 'MiB', 'GiB', 'TiB'],
  limit: 'memoryTotal',
};

const QUANTITIES: Readonly<Record<string, Quantity>> = {
  utilization: { read: makeReadingReader('utilization'), units: { '': 1, '%': 1 }, known: ['%'] },
  memory: { read: makeReadingReader('memoryUsed'), ...MEMORY_QUANTITY },
  left: {
    read: ({ readings }, row) =>
      (readings.memoryTotal[row] ?? NaN) - (readings.memoryUsed[row] ?? NaN),
    ...MEMORY_QUANTITY,
  },
  power: {
    read: makeReadingReader('power'),
    units: { '': 1, w: 1, kw: 1000 },
    known: ['%', 'W', 'kW'],
    limit: 'powerLimit',
  },
  temperature: {
    read: makeReadingReader('temperature'),
    units: { '': 1, c: 1, '°c': 1, f: 1, '°f': 1 },
    known: ['C', 'F'],
  },
  idle: {
    read: ({ idle_s }, row) => idle_s[row] ?? NaN,
    units: { '': 60, s: 1, min: 60, m: 60, h: 3600, d: 86_400 },
    known: ['s', 'min', 'h', 'd'],
  },
};

function makeReadingReader(key: keyof Readings): Quantity['read'] {
  return ({ readings }, row) => readings[key][row] ?? NaN;
}

const OPERATORS: Readonly<Record<string, (value: number, than: number) => boolean>> = {
  '>': (value, than) => value > than,
  '>=': (value, than) => value >= than,
  '<': (value, than) => value < than,
  '<=': (value, than) => value <= than,
  '=': (value, than) => value === than,
};

/** Returns the comparison of a filter word, or `null` if the word is not a comparison. */
function parseComparison(word: string): Comparison | null {
  const [, name = '', sign = '', right = ''] = COMPARISON_PATTERN.exec(word) ?? [];
  const compare = OPERATORS[sign];
  if (compare === undefined) {
    return null;
  }
  const names = Object.keys(QUANTITIES);
  const quantity = QUANTITIES[names.find((known) => known.startsWith(name)) ?? ''];
  if (quantity === undefined) {
    return {
      mistake: trans.__(
        '%1: unknown quantity %2. Valid quantities: %3.',
        word,
        name,
        names.join(', '),
      ),
    };
  }
  const [digits = ''] = /^[\d.]*/.exec(right) ?? [];
  const unit = right.slice(digits.length);
  const number = digits === '' ? NaN : Number(digits);
  if (Number.isNaN(number)) {
    return {
      mistake: trans.__('%1: a number must follow %2, for example memory>80GiB.', word, sign),
    };
  }
  const { read, limit, known } = quantity;
  if (unit === '%' && limit !== undefined) {
    return {
      test: (all, row) =>
        compare((read(all, row) / (all.readings[limit][row] ?? NaN)) * 100, number),
    };
  }
  const scale = findOwnProperty(quantity.units, unit);
  if (scale === undefined) {
    return {
      mistake: trans.__('%1: invalid unit %2. Valid units: %3.', word, unit, known.join(', ')),
    };
  }
  const isFahrenheit =
    quantity === QUANTITIES.temperature &&
    (unit === '' ? units().temperature === '°F' : unit.endsWith('f'));
  const than = isFahrenheit ? (number - 32) / 1.8 : number * scale;
  return { test: (all, row) => compare(read(all, row), than) };
}
