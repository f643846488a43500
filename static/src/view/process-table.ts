/** The processes that hold GPUs. */

import { h, keyed, setAttribute, setShown, setText } from '../lib/dom';
import { gibColumn, percent } from '../lib/format';
import { runsIn, sharedBy } from '../model/owner';
import { textOf, type ProcessRow, type UnreadableRow } from '../model/processes';
import { ReadingValue, type Freshness } from './value';

type RowData = ProcessRow | UnreadableRow;

const COLUMNS = [
  { name: 'GPU', className: 'gpumon-col-gpu' },
  { name: 'PID', className: 'gpumon-col-pid gpumon-wide' },
  { name: 'User', className: 'gpumon-col-user gpumon-wide' },
  { name: 'Process', className: 'gpumon-col-process' },
  { name: 'Memory', className: 'gpumon-col-number' },
  { name: 'SM', className: 'gpumon-col-number' },
];

export class ProcessTable {
  readonly element: HTMLElement;
  private readonly body = h('tbody');
  private readonly table: HTMLTableElement;
  private readonly empty = h('p', { class: 'gpumon-empty' }, 'No process holds a GPU.');
  private readonly rows = new Map<string, Row>();

  constructor(private readonly onHighlight: (row: ProcessRow | null) => void) {
    const heads = COLUMNS.map(({ name, className }) => h('th', { class: className, scope: 'col' }, name));
    this.table = h(
      'table',
      { class: 'gpumon-processes', 'data-testid': 'gpumon-processes' },
      h('thead', {}, h('tr', {}, ...heads)),
      this.body,
    );
    this.element = h(
      'section',
      { class: 'gpumon-section', 'aria-label': 'Processes' },
      h('h2', { class: 'gpumon-heading' }, 'Processes'),
      this.table,
      this.empty,
    );
  }

  update(rows: readonly RowData[], freshness: Freshness): void {
    setShown(this.table, rows.length > 0);
    setShown(this.empty, rows.length === 0);
    const shown = keyed(
      this.body,
      this.rows,
      rows,
      (row) => row.key,
      (row) => (row.kind === 'process' ? new ReadableRow(this.onHighlight) : new DashRow()),
    );
    rows.forEach((row, i) => shown[i]?.update(row, freshness));
  }
}

interface Row {
  element: HTMLElement;
  update: (row: RowData, freshness: Freshness) => void;
}

class ReadableRow implements Row {
  readonly element: HTMLElement;
  private readonly gpu = h('td', { class: 'gpumon-col-gpu' });
  private readonly swatch = h('span', { class: 'gpumon-swatch', 'aria-hidden': 'true' });
  private readonly name = h('span', { class: 'gpumon-process-name', 'data-testid': 'gpumon-process-name' });
  private readonly sub = h('span', { class: 'gpumon-process-sub gpumon-narrow' });
  private readonly command = h('span', { class: 'gpumon-process-sub gpumon-wide' });
  private readonly user = h('td', { class: 'gpumon-col-user gpumon-wide' });
  private readonly pid = h('td', { class: 'gpumon-col-pid gpumon-wide' });
  private readonly memory = new ReadingValue('process.memory_bytes');
  private readonly sm = new ReadingValue('process.sm_percent');
  private row: ProcessRow | null = null;

  constructor(onHighlight: (row: ProcessRow | null) => void) {
    this.element = h(
      'tr',
      {},
      this.gpu,
      this.pid,
      this.user,
      h('td', { class: 'gpumon-col-process' }, this.swatch, h('div', {}, this.name, this.sub, this.command)),
      h('td', { class: 'gpumon-col-number' }, this.memory.element),
      h('td', { class: 'gpumon-col-number' }, this.sm.element),
    );
    this.element.addEventListener('pointerenter', () => {
      onHighlight(this.row);
    });
    this.element.addEventListener('pointerleave', () => {
      onHighlight(null);
    });
  }

  update(row: RowData, freshness: Freshness): void {
    if (row.kind !== 'process') {
      return;
    }
    this.row = row;
    const { process } = row;
    const user = textOf(process.user);
    const command = textOf(process.command);
    const pid = String(process.pid);
    setAttribute(this.element, 'data-pid', pid);
    setAttribute(this.element, 'data-process-gpu', String(row.gpu));
    setText(this.gpu, String(row.gpu));
    setAttribute(this.swatch, 'data-paint', String(row.slot));
    setText(this.name, row.name);
    const told = command.reason === null ? command.text : `command line ${command.reason}`;
    setAttribute(this.name, 'title', `${row.name} (PID ${pid})\n${told}`);
    const behind = runsIn(process);
    const shared = sharedBy(process);
    setText(this.sub, [user.text, pid, ...shared, behind].filter((part) => part !== null).join(' · '));
    setAttribute(this.sub, 'title', user.reason === null ? `user ${user.text}, PID ${pid}` : `user ${user.reason}`);
    const line = command.reason === null ? command.text : null;
    setText(this.command, [...shared, behind, line].filter((part) => part !== null).join(' · '));
    setAttribute(this.command, 'title', told);
    setText(this.user, user.text);
    setAttribute(this.user, 'title', user.reason);
    setText(this.pid, pid);
    this.memory.update(process.memory_bytes, gibColumn, freshness);
    this.sm.update(process.sm_percent, percent, freshness);
  }
}

/** Says why the processes of a GPU are not listed. */
class DashRow implements Row {
  readonly element: HTMLElement;
  private readonly gpu = h('td', { class: 'gpumon-col-gpu' });
  private readonly reason = h('td', { class: 'gpumon-unreadable', colspan: '3' });

  constructor() {
    const skipped = ['pid', 'user'].map((column) => h('td', { class: `gpumon-col-${column} gpumon-wide` }));
    this.element = h('tr', {}, this.gpu, ...skipped, this.reason);
  }

  update(row: RowData): void {
    if (row.kind === 'unreadable') {
      setText(this.gpu, String(row.gpu));
      setText(this.reason, `– processes: ${row.reason}`);
    }
  }
}
