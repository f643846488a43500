/** The icon of a level: an octagon, a triangle or a disc, so that colors need not be told apart. */

import { h } from '../lib/dom';
import { table, trans } from '../lib/translation';

const LABELS = table((): Partial<Record<string, string>> => ({
  critical: trans.__('Critical:'),
  warning: trans.__('Warning:'),
  notice: trans.__('Notice:'),
}));

/** The text for screen readers in place of the icon; empty without severity. */
export function severityLabel(level: string): string {
  const label = LABELS()[level];
  return label === undefined ? '' : `${label} `;
}

/** Takes its shape and color from the nearest `data-level` around it. */
export function severityIcon(): HTMLElement {
  return h('span', { class: 'gpumon-severity-icon', 'aria-hidden': 'true' });
}
