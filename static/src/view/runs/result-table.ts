/** The results of a run, beside the theoretical peak and the last result here. */

import { h, setStyle } from '../../lib/dom';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import { COLUMNS, describeResult, type Column, type Part } from '../../model/describe-result';
import { valueOf } from '../../model/reading';
import type { RunResult } from '../../wire';
import { severityIcon } from '../severity-icon';

export interface ResultRow {
  result: RunResult;
  last: RunResult | null;
}

/** A table that scrolls sideways where there is no room for it. */
export function resultTable(rows: readonly ResultRow[]): HTMLElement {
  const columns = COLUMNS();
  const names = Object.keys(columns) as Column[];
  const several = new Set(rows.map(({ result }) => result.device)).size > 1;
  const head = h(
    'tr',
    {},
    ...names.map((name) => h('th', { scope: 'col', 'data-column': name }, columns[name])),
  );
  const body = rows.map((row) => tableRow(row, names, several));
  return scrolled(
    h('table', { class: 'gpumon-run-table' }, h('thead', {}, head), h('tbody', {}, ...body)),
  );
}

/** Keys can scroll it, too. */
export function scrolled(content: HTMLElement): HTMLElement {
  return h(
    'div',
    { class: 'gpumon-run-scroll', tabindex: '0', role: 'group', 'aria-label': trans.__('Results') },
    content,
  );
}

/** What was run, on which numbers, and where if that is to be told. */
export function workloadCell({ id, dtype, device }: RunResult, withDevice: boolean): HTMLElement {
  const more = plainText([dtype, withDevice ? device : ''].filter(Boolean).join(', '));
  return h(
    'th',
    { scope: 'row' },
    plainText(id),
    h('span', { class: 'gpumon-run-text' }, ` ${more}`),
  );
}

function tableRow(
  { result, last }: ResultRow,
  names: readonly Column[],
  withDevice: boolean,
): HTMLElement {
  const parts = describeResult(result, last);
  const cells = names.map((name) =>
    name === 'workload' ? workloadCell(result, withDevice) : cell(name, parts[name], result),
  );
  return h('tr', {}, ...cells);
}

function cell(name: Column, { text, title, absent }: Part, result: RunResult): HTMLElement {
  const element = h('td', { 'data-column': name, title }, text);
  if (absent) {
    element.append(h('span', { class: 'gpumon-visually-hidden' }, ` (${title})`));
  }
  const share = valueOf(result.share);
  if (name === 'share' && share !== null) {
    const bar = h('span', { class: 'gpumon-run-share', 'aria-hidden': 'true' });
    setStyle(bar, '--_share', String(Math.min(1, share)));
    element.prepend(bar);
  }
  if (name === 'result') {
    element.setAttribute('data-level', result.verified ? 'done' : 'critical');
    element.prepend(severityIcon());
  }
  return element;
}
