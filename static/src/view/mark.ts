/** The sign of a level: an octagon, a triangle or a disc, so that nobody needs to tell colours apart. */

import { h } from '../lib/dom';

/** What a screen reader says in place of the sign. */
export const SPOKEN_LEVELS: Partial<Record<string, string>> = {
  act: 'Critical: ',
  warn: 'Warning: ',
  note: 'Notice: ',
};

/** Takes its shape and colour from the nearest `data-level` around it. */
export function levelMark(): HTMLElement {
  return h('span', { class: 'gpumon-mark', 'aria-hidden': 'true' });
}
