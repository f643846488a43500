/** A sentence or a failure of a run, as a line. */

import { h } from '../../lib/dom';
import { plainText } from '../../lib/text';
import { RUN_TOPICS } from '../../model/describe-run';
import type { RunItem } from '../../wire';
import { severityIcon } from '../severity-icon';

const LONGEST = 2000;

export function itemElement(item: Exclude<RunItem, { item: 'result' }>): HTMLElement {
  return item.item === 'failed'
    ? line('critical', plainText(item.id), plainText(item.error, LONGEST))
    : line('none', RUN_TOPICS()[item.topic], plainText(item.text, LONGEST));
}

function line(level: string, name: string, text: string): HTMLElement {
  const parts = [...(name === '' ? [] : [h('b', {}, name)]), h('span', {}, text)];
  return h(
    'li',
    { 'data-level': level },
    severityIcon(),
    h('span', { class: 'gpumon-run-parts' }, ...parts),
  );
}
