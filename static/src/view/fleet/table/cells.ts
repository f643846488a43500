/** What cells of tables show. */

import { h, setAttribute, setText } from '../../../lib/dom';
import { DASH } from '../../../lib/format';
import { trans } from '../../../lib/translation';
import type { Level } from '../../../model/describe';
import type { Columns } from '../../../model/fleet/columns';
import { conditionText, conditionTitle, levelOf } from '../../../model/fleet/describe';
import { withoutVendor } from '../../../model/gpu';
import { severityIcon, severityLabel } from '../../severity-icon';
import type { NodeLinks } from '../node-link';

/** A text, or a dash with the reason why there is none. */
export function writeText(cell: HTMLElement, text: string | null, missing?: string): void {
  setText(cell, text ?? DASH);
  setAttribute(
    cell,
    'title',
    text === null ? (missing ?? trans.__('no reading')) : text.length > 24 ? text : null,
  );
}

/** The name of a GPU without its vendor. */
export function writeModel(cell: HTMLElement, model: string | null, before = ''): void {
  writeText(cell, model === null ? null : `${before}${withoutVendor(model)}`);
  if (model !== null) {
    cell.title = model;
  }
}

/** A node's name, as a way to it where there is one. */
export function writeNode(
  cell: HTMLElement,
  links: NodeLinks,
  columns: Columns,
  node: number,
  rest = '',
): void {
  const name = columns.nodeNames[node] ?? '';
  const reason = links.reason(columns, node);
  const key = JSON.stringify([columns.fleet.nodes.name[node], reason === null]);
  if (cell.dataset.node !== key) {
    cell.dataset.node = key;
    cell.replaceChildren(
      reason === null
        ? links.link(columns.fleet.nodes.name[node] ?? '', name, 'gpumon-table-node')
        : h('span', { class: 'gpumon-table-closed' }, name),
      h('span', { class: 'gpumon-table-rest' }),
    );
  }
  const last = cell.lastElementChild;
  if (last !== null) {
    setText(last, rest);
  }
  setAttribute(cell, 'title', reason === null ? null : trans.__('Cannot be opened: %1', reason));
}

/** A state with the icon of its level. */
export function writeState(cell: HTMLElement, text: string, level: Level, title = ''): void {
  let label = cell.querySelector('.gpumon-visually-hidden');
  let words = cell.lastElementChild;
  if (label === null || words === null) {
    label = h('span', { class: 'gpumon-visually-hidden' });
    words = h('span', {});
    cell.replaceChildren(severityIcon(), label, words);
  }
  setAttribute(cell, 'data-level', level);
  setAttribute(cell, 'title', title === '' ? null : title);
  setText(label, severityLabel(level));
  setText(words, text);
}

/** A condition with the icon of its level, and with what there is to know of it on hover. */
export function writeCondition(
  cell: HTMLElement,
  { kind, severity }: { kind: string; severity: number },
): void {
  writeState(cell, conditionText(kind), levelOf(severity), conditionTitle(kind));
}
