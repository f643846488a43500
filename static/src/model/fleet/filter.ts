/**
 * The filter for GPUs: it shows those that match every typed word. `tests/fleet-cases.json` has
 * cases that this filter and the terminal's are both tested with.
 */

import { own } from '../../lib/own';
import { table, trans } from '../../lib/translation';
import type { FleetOwner } from '../../wire';
import { USE, type Columns } from './columns';
import { comparison } from './comparison';
import { conditionText } from './describe';

export interface Filter {
  /** Returns 1 for each row that is shown and 0 for others; `null` if all rows are shown. */
  match: (columns: Columns) => Uint8Array | null;
  /** `true` if no word is left: nothing was typed, or only unfinished or mistyped words. */
  isEmpty: boolean;
  /**
   * Returns a test for a GPU and one of its owners. Words about owners must match this owner; other
   * owners of the same GPU do not count.
   */
  matchHolds: (columns: Columns) => HoldTest;
  /** Returns `true` if every word is about names and matches a name of the owner. */
  names: (owner: FleetOwner) => boolean;
  /** What is wrong with words that are left out, each in a sentence. */
  mistakes: readonly string[];
}

/** Whether a row matches a word. */
type Test = (row: number) => boolean;
type Word = (columns: Columns) => Test;
/** Returns `true` if a word matches a row and one of its owners, given by its index. */
type HoldTest = (row: number, owner: number) => boolean;
/** Returns `true` if a word names an owner; `null` if the word is about something else. */
type OwnerTest = ((owner: FleetOwner) => boolean) | null;

interface ParsedWord {
  word: Word;
  owner: OwnerTest;
  holds: (columns: Columns) => HoldTest;
}

/** From this temperature on a GPU is hot. */
const HOT_CELSIUS = 80;

/** Words with a meaning of their own, in English and in the user's language. */
const STATES = table((): Record<string, Word> => {
  const words: [english: string, translated: string, word: Word][] = [
    ['busy', trans.__('busy'), inUse(USE.busy)],
    ['idle', trans.__('idle'), inUse(USE.idle)],
    ['free', trans.__('free'), inUse(USE.free)],
    ['held', trans.__('held'), inUse(USE.busy, USE.idle)],
    ['lost', trans.__('lost'), inUse(USE.lost, USE.unknown)],
    ['hot', trans.__('hot'), isHot],
  ];
  const byWord = (at: 0 | 1): Record<string, Word> =>
    Object.fromEntries(words.map((one) => [one[at], one[2]]));
  return { ...byWord(0), ...byWord(1) };
});

interface Field {
  word: (text: string) => Word;
  /** Returns the names of an owner in this field; missing if the field is not about owners. */
  ownerNames?: OwnerNames;
}

type OwnerNames = (owner: FleetOwner) => readonly (string | null)[];

/**
 * Fields, written before a colon. Names of owners must be equal, since one name can contain
 * another.
 */
const FIELDS: Readonly<Record<string, Field>> = {
  node: { word: (text) => matchNodeNames(equalOrContaining(text)) },
  gpu: { word: (text) => matchModels(equalOrContaining(text)) },
  user: ownerField(({ user }) => [user]),
  job: ownerField(({ kind, id }) => (kind === 'user' || kind === 'notebook' ? [] : [id])),
  notebook: ownerField(({ kind, id }) => (kind === 'notebook' ? [id] : [])),
  namespace: ownerField(({ namespace }) => [namespace]),
  condition: { word: (text) => matchConditions(containing(text)) },
};

/** What may be typed, besides names. */
export function filterWords(): string[] {
  return [
    ...Object.keys(STATES()),
    ...Object.keys(FIELDS).map((field) => `${field}:`),
    'memory>80GiB',
    'power<100W',
  ];
}

export function parseFilter(typed: string): Filter {
  const mistakes: string[] = [];
  const words: ParsedWord[] = [];
  for (const one of wordsOf(typed.toLowerCase())) {
    const text = unquoted(one);
    const isExcluded = /^[-!]./.test(text);
    const word = wordOf(isExcluded ? text.slice(1) : text, mistakes);
    if (word !== null) {
      words.push(isExcluded ? negated(word) : word);
    }
  }
  return {
    mistakes,
    isEmpty: words.length === 0,
    matchHolds: (columns) => {
      const tests = words.map(({ holds }) => holds(columns));
      return (row, owner) => tests.every((test) => test(row, owner));
    },
    match: (columns) => {
      if (words.length === 0) {
        return null;
      }
      const tests = words.map(({ word }) => word(columns));
      const shown = new Uint8Array(columns.count);
      for (let row = 0; row < columns.count; row += 1) {
        shown[row] = tests.every((test) => test(row)) ? 1 : 0;
      }
      return shown;
    },
    names: (named) => words.every(({ owner }) => owner?.(named) === true),
  };
}

/** Returns a word of the filter for a name in a field. */
export function fieldWord(field: 'user' | 'job' | 'notebook' | 'namespace', name: string): string {
  const text = unquoted(name);
  return `${field}:${/[\s,]/.test(text) ? `"${text}"` : text}`.toLowerCase();
}

/** The filter with this word added, or without it where it is there. */
export function toggledWord(typed: string, word: string): string {
  const words = wordsOf(typed);
  return (words.includes(word) ? words.filter((one) => one !== word) : [...words, word]).join(' ');
}

export function hasWord(typed: string, word: string): boolean {
  return wordsOf(typed).includes(word);
}

/** Splits what is typed at spaces and commas, except inside quotes. */
function wordsOf(typed: string): string[] {
  return typed.match(/(?:"[^"]*"?|[^\s,"])+/g) ?? [];
}

function unquoted(text: string): string {
  return text.replaceAll('"', '');
}

function wordOf(typed: string, mistakes: string[]): ParsedWord | null {
  if (typed === '') {
    return null;
  }
  const compared = comparison(typed);
  if (compared !== null) {
    if ('mistake' in compared) {
      mistakes.push(compared.mistake);
      return null;
    }
    const { test } = compared;
    return aboutDevices((columns) => (row) => test(columns.readings, columns.idle_s, row));
  }
  const state = own(STATES(), typed);
  if (state !== undefined) {
    return aboutDevices(state);
  }
  const [, name = '', text = ''] = /^([a-z]+):(.*)$/.exec(typed) ?? [];
  const field = own(FIELDS, name);
  if (field !== undefined) {
    // Whoever is still typing is shown everything.
    return text === '' ? null : inField(field, text);
  }
  const device = anyOf(
    matchNodeNames(containing(typed)),
    matchModels(containing(typed)),
    matchConditions(containing(typed)),
  );
  const owner = ownerTest(ALL_NAMES, containing(typed));
  return {
    word: anyOf(device, matchOwnerNames(ALL_NAMES, containing(typed))),
    owner,
    holds: holdTest(owner, device),
  };
}

function aboutDevices(word: Word): ParsedWord {
  return { word, owner: null, holds: holdTest(null, word) };
}

function inField({ word, ownerNames }: Field, text: string): ParsedWord {
  if (ownerNames === undefined) {
    return aboutDevices(word(text));
  }
  const owner = ownerTest(ownerNames, equalTo(text));
  return { word: word(text), owner, holds: holdTest(owner, null) };
}

const ALL_NAMES: OwnerNames = ({ user, id, namespace }) => [user, id, namespace];

function ownerTest(names: OwnerNames, choice: Choice): (owner: FleetOwner) => boolean {
  return (owner) => choice(names(owner).filter((name) => name !== null)).includes(true);
}

/** Returns a test that matches a named owner, or a GPU whoever holds it. */
function holdTest(owner: OwnerTest, device: Word | null): (columns: Columns) => HoldTest {
  return (columns) => {
    const isNamed = columns.fleet.owners.map((one) => owner?.(one) === true);
    const test = device?.(columns);
    return (row, place) => isNamed[place] === true || test?.(row) === true;
  };
}

function ownerField(ownerNames: OwnerNames): Field {
  return { word: (text) => matchOwnerNames(ownerNames, equalTo(text)), ownerNames };
}

function anyOf(...words: Word[]): Word {
  return (columns) => {
    const tests = words.map((word) => word(columns));
    return (row) => tests.some((test) => test(row));
  };
}

function negated({ word, owner, holds }: ParsedWord): ParsedWord {
  return {
    word: (columns) => {
      const test = word(columns);
      return (row) => !test(row);
    },
    owner: owner === null ? null : (named) => !owner(named),
    holds: (columns) => {
      const test = holds(columns);
      return (row, place) => !test(row, place);
    },
  };
}

function isHot({ readings }: Columns): Test {
  return (row) => (readings.temperature[row] ?? NaN) >= HOT_CELSIUS;
}

function inUse(...uses: number[]): Word {
  return ({ use }) =>
    (row) =>
      uses.includes(use[row] ?? -1);
}

/** Which of some names match; each is looked at once, however many rows have it. */
type Choice = (names: readonly string[]) => boolean[];

function containing(text: string): Choice {
  return (names) => names.map((name) => comparable(name).includes(text));
}

function equalTo(text: string): Choice {
  return (names) => names.map((name) => comparable(name) === text);
}

/** Finds equal names; if there are none, names that contain the text. */
function equalOrContaining(text: string): Choice {
  return (names) => {
    const exact = equalTo(text)(names);
    return exact.includes(true) ? exact : containing(text)(names);
  };
}

/** Quotes only keep the parts of a word together. */
function comparable(name: string): string {
  return unquoted(name).toLowerCase();
}

function matchNodeNames(choice: Choice): Word {
  return ({ nodeNames, node }) => {
    const found = choice(nodeNames);
    return (row) => found[node[row] ?? -1] === true;
  };
}

function matchModels(choice: Choice): Word {
  return ({ models, fleet }) => {
    const found = choice(models);
    return (row) => found[fleet.gpus.model[row] ?? -1] === true;
  };
}

function matchOwnerNames(namesOf: OwnerNames, choice: Choice): Word {
  return ({ fleet, ownersOf }) => {
    const names = fleet.owners.flatMap((owner, place) =>
      namesOf(owner).flatMap((name) => (name === null ? [] : [{ name, place }])),
    );
    const matches = choice(names.map(({ name }) => name));
    const found = new Set(names.flatMap(({ place }, i) => (matches[i] === true ? [place] : [])));
    return (row) => ownersOf(row).some((owner) => found.has(owner));
  };
}

function matchConditions(choice: Choice): Word {
  return ({ fleet, conditionsOf }) => {
    const kinds = [...new Set(fleet.conditions.map(({ kind }) => kind))];
    const [byName, byText] = [choice(kinds), choice(kinds.map(conditionText))];
    const found = new Set(kinds.filter((_, i) => byName[i] === true || byText[i] === true));
    return (row) => conditionsOf(row).some(({ kind }) => found.has(kind));
  };
}
