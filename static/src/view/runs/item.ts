/** A result, a sentence or a failure of a run, as a line. */

import { h } from '../../lib/dom';
import { plainText } from '../../lib/text';
import { resultParts, RUN_TOPICS } from '../../model/describe-run';
import type { RunItem } from '../../wire';
import { severityIcon } from '../severity-icon';

const LONGEST = 2000;

export function itemElement(item: RunItem): HTMLElement {
  switch (item.item) {
    case 'result':
      return line(item.verified ? 'done' : 'critical', plainText(item.id), [
        h('span', { class: 'gpumon-run-text' }, plainText([item.dtype, item.device].filter(Boolean).join(', '))),
        ...resultParts(item).map(({ text, title, absent }) => {
          const part = h('span', { class: 'gpumon-run-part', title }, text);
          if (absent) {
            part.append(h('span', { class: 'gpumon-visually-hidden' }, ` (${title})`));
          }
          return part;
        }),
      ]);
    case 'failed':
      return line('critical', plainText(item.id), [h('span', {}, plainText(item.error, LONGEST))]);
    case 'said':
      return line('none', RUN_TOPICS()[item.topic], [h('span', {}, plainText(item.text, LONGEST))]);
  }
}

function line(level: string, name: string, parts: readonly HTMLElement[]): HTMLElement {
  const text = h('span', { class: 'gpumon-run-parts' }, ...(name === '' ? [] : [h('b', {}, name)]), ...parts);
  return h('li', { 'data-level': level }, severityIcon(), text);
}
