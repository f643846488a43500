/** The sign of a level: an octagon, a triangle or a disc, so that nobody needs to tell colours apart. */

import { h } from '../lib/dom';
import { table, trans } from '../lib/translation';

const SPOKEN = table((): Partial<Record<string, string>> => ({
  act: trans.__('Critical:'),
  warn: trans.__('Warning:'),
  note: trans.__('Notice:'),
}));

/** What a screen reader says in place of the sign, before whatever has it; empty where it says nothing. */
export function spokenLevel(level: string): string {
  const word = SPOKEN()[level];
  return word === undefined ? '' : `${word} `;
}

/** Takes its shape and colour from the nearest `data-level` around it. */
export function levelMark(): HTMLElement {
  return h('span', { class: 'gpumon-mark', 'aria-hidden': 'true' });
}
