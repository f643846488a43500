/** The sign of a level: an octagon, a triangle or a disc, so that nobody needs to tell colors apart. */

import { h } from '../lib/dom';
import { table, trans } from '../lib/translation';

const SPOKEN = table((): Partial<Record<string, string>> => ({
  critical: trans.__('Critical:'),
  warning: trans.__('Warning:'),
  notice: trans.__('Notice:'),
}));

/** What a screen reader says in place of the sign, before whatever has it; empty where it says nothing. */
export function severityLabel(level: string): string {
  const word = SPOKEN()[level];
  return word === undefined ? '' : `${word} `;
}

/** Takes its shape and color from the nearest `data-level` around it. */
export function severityIcon(): HTMLElement {
  return h('span', { class: 'gpumon-severity-icon', 'aria-hidden': 'true' });
}
