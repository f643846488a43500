/** Which GPUs are shown: those that match every word that somebody has typed. */

import { own } from '../../lib/own';
import { table, trans } from '../../lib/translation';
import type { FleetOwner } from '../../wire';
import { USE, type Columns } from './columns';
import { comparison } from './comparison';
import { conditionText } from './describe';

export interface Filter {
  /** Tells for each row whether it is shown, 1 or 0; `null` where all are. */
  match: (columns: Columns) => Uint8Array | null;
  /** What is wrong with words that are left out, each in a sentence. */
  mistakes: readonly string[];
}

/** Whether a row matches a word. */
type Test = (row: number) => boolean;
type Word = (columns: Columns) => Test;

/** From this temperature on a GPU is hot. */
const HOT_CELSIUS = 80;

/** Words with a meaning of their own, in the user's language. */
const STATES = table((): Record<string, Word> => ({
  [trans.__('busy')]: inUse(USE.busy),
  [trans.__('idle')]: inUse(USE.idle),
  [trans.__('free')]: inUse(USE.free),
  [trans.__('held')]: inUse(USE.busy, USE.idle),
  [trans.__('lost')]: inUse(USE.lost, USE.unknown),
  [trans.__('hot')]:
    ({ readings }) =>
    (row) =>
      (readings.temperature[row] ?? NaN) >= HOT_CELSIUS,
}));

/** What stands before a colon, to look in one place alone. */
const PLACES: Readonly<Record<string, (text: string) => Word>> = {
  node: (text) => byNode(whole(text)),
  gpu: (text) => byModel(whole(text)),
  user: (text) => byOwner(({ user }) => [user], whole(text)),
  job: (text) => byOwner(({ kind, id }) => (kind === 'user' || kind === 'notebook' ? [] : [id]), whole(text)),
  notebook: (text) => byOwner(({ kind, id }) => (kind === 'notebook' ? [id] : []), whole(text)),
  namespace: (text) => byOwner(({ namespace }) => [namespace], whole(text)),
  condition: (text) => byCondition(part(text)),
};

/** What may be typed, besides names. */
export function filterWords(): string[] {
  return [...Object.keys(STATES()), ...Object.keys(PLACES).map((place) => `${place}:`), 'memory>80GiB', 'power<100W'];
}

export function parseFilter(typed: string): Filter {
  const mistakes: string[] = [];
  const words: Word[] = [];
  for (const one of typed.toLowerCase().split(/[\s,]+/)) {
    const isExcluded = /^[-!]./.test(one);
    const word = wordOf(isExcluded ? one.slice(1) : one, mistakes);
    if (word !== null) {
      words.push(isExcluded ? not(word) : word);
    }
  }
  return {
    mistakes,
    match: (columns) => {
      if (words.length === 0) {
        return null;
      }
      const tests = words.map((word) => word(columns));
      const shown = new Uint8Array(columns.count);
      for (let row = 0; row < columns.count; row += 1) {
        shown[row] = tests.every((test) => test(row)) ? 1 : 0;
      }
      return shown;
    },
  };
}

/** The filter with this word added, or without it where it is there. */
export function toggledWord(typed: string, word: string): string {
  const words = typed.split(/[\s,]+/).filter((one) => one !== '');
  return (words.includes(word) ? words.filter((one) => one !== word) : [...words, word]).join(' ');
}

export function hasWord(typed: string, word: string): boolean {
  return typed.split(/[\s,]+/).includes(word);
}

function wordOf(typed: string, mistakes: string[]): Word | null {
  if (typed === '') {
    return null;
  }
  const compared = comparison(typed);
  if (compared !== null) {
    if ('mistake' in compared) {
      mistakes.push(compared.mistake);
      return null;
    }
    return ({ readings, idle_s }) => {
      return (row) => compared.test(readings, idle_s, row);
    };
  }
  const state = own(STATES(), typed);
  if (state !== undefined) {
    return state;
  }
  const [, place = '', text = ''] = /^([a-z]+):(.*)$/.exec(typed) ?? [];
  const make = own(PLACES, place);
  if (make !== undefined) {
    // Whoever is still typing is shown everything.
    return text === '' ? null : make(text);
  }
  return anywhere(typed);
}

function anywhere(text: string): Word {
  const words: Word[] = [
    byNode(part(text)),
    byModel(part(text)),
    byOwner(({ user, id, namespace }) => [user, id, namespace], part(text)),
    byCondition(part(text)),
  ];
  return (columns) => {
    const tests = words.map((word) => word(columns));
    return (row) => tests.some((test) => test(row));
  };
}

function not(word: Word): Word {
  return (columns) => {
    const test = word(columns);
    return (row) => !test(row);
  };
}

function inUse(...uses: number[]): Word {
  return ({ use }) =>
    (row) =>
      uses.includes(use[row] ?? -1);
}

/** Which of some names match; each is looked at once, however many rows have it. */
type Choice = (names: readonly string[]) => boolean[];

function part(text: string): Choice {
  return (names) => names.map((name) => name.toLowerCase().includes(text));
}

/** Who is called exactly so; where nobody is, whose name has it as a part. */
function whole(text: string): Choice {
  return (names) => {
    const exact = names.map((name) => name.toLowerCase() === text);
    return exact.includes(true) ? exact : part(text)(names);
  };
}

function byNode(choice: Choice): Word {
  return ({ nodeNames, node }) => {
    const found = choice(nodeNames);
    return (row) => found[node[row] ?? -1] === true;
  };
}

function byModel(choice: Choice): Word {
  return ({ models, fleet }) => {
    const found = choice(models);
    return (row) => found[fleet.gpus.model[row] ?? -1] === true;
  };
}

function byOwner(namesOf: (owner: FleetOwner) => readonly (string | null)[], choice: Choice): Word {
  return ({ fleet, ownersOf }) => {
    const names = fleet.owners.flatMap((owner, place) =>
      namesOf(owner).flatMap((name) => (name === null ? [] : [{ name, place }])),
    );
    const matches = choice(names.map(({ name }) => name));
    const found = new Set(names.flatMap(({ place }, i) => (matches[i] === true ? [place] : [])));
    return (row) => ownersOf(row).some((owner) => found.has(owner));
  };
}

function byCondition(choice: Choice): Word {
  return ({ fleet, conditionsOf }) => {
    const kinds = [...new Set(fleet.conditions.map(({ kind }) => kind))];
    const [byName, byText] = [choice(kinds), choice(kinds.map(conditionText))];
    const found = new Set(kinds.filter((_, i) => byName[i] === true || byText[i] === true));
    return (row) => conditionsOf(row).some(({ kind }) => found.has(kind));
  };
}
