/** Who holds GPUs: the notebooks, and below them everything else. */

import { button, h, KeyedRows, setAttribute, setShown, setText } from '../lib/dom';
import { DASH, duration, memoryColumn, percent } from '../lib/format';
import { joined, plainText } from '../lib/text';
import { table, trans } from '../lib/translation';
import { processName, textOf, type HolderRow, type OmittedRow, type UnreadableRow } from '../model/holders';
import { runsIn, sharedBy } from '../model/owner';
import type { NotebookHost } from './notebook-host';
import { setPaint } from './palette';
import { ReadingValue, type Freshness } from './value';

type RowData = HolderRow | UnreadableRow | OmittedRow;

const COLUMNS = table(() => [
  { name: trans.__('GPU'), className: 'gpumon-col-gpu' },
  { name: 'PID', className: 'gpumon-col-pid gpumon-wide' },
  { name: trans.__('User'), className: 'gpumon-col-user gpumon-wide' },
  { name: '', className: 'gpumon-col-process' },
  { name: trans.__('Memory'), className: 'gpumon-col-number' },
  { name: 'SM', className: 'gpumon-col-number' },
]);

export class HolderTable {
  readonly element = h('section', { class: 'gpumon-section', 'aria-label': trans.__('Processes') });
  private readonly notebooks: HolderSection;
  private readonly others: HolderSection;
  private readonly empty = h('p', { class: 'gpumon-empty' }, trans.__('No process holds a GPU.'));

  constructor(onHighlight: (row: HolderRow | null) => void, host?: NotebookHost) {
    this.notebooks = new HolderSection('notebook', trans.__('Notebook'), onHighlight, host);
    this.others = new HolderSection('process', trans.__('Process'), onHighlight);
    this.element.append(this.notebooks.element, this.others.element, this.empty);
  }

  update(rows: readonly RowData[], freshness: Freshness): void {
    const isNotebook = (row: RowData): boolean => row.kind === 'holder' && row.notebook !== null;
    const notebooks = rows.filter(isNotebook);
    const others = rows.filter((row) => !isNotebook(row));
    this.notebooks.update(trans.__('Notebooks'), notebooks, freshness);
    const heading = notebooks.length > 0 ? trans.__('Other processes') : trans.__('Processes');
    this.others.update(heading, others, freshness);
    // The heading stays where there is nothing below it but these words.
    setShown(this.others.element, others.length > 0 || notebooks.length === 0);
    setShown(this.empty, rows.length === 0);
  }
}

class HolderSection {
  readonly element: HTMLElement;
  private readonly heading = h('h2');
  private readonly body = h('tbody');
  private readonly table: HTMLTableElement;
  private readonly rows = new KeyedRows<RowData, Row>(
    this.body,
    ({ key }) => key,
    ({ kind }) => (kind === 'holder' ? new ReadableRow(this.onHighlight, this.host) : new NoteRow()),
  );

  constructor(
    kind: 'notebook' | 'process',
    what: string,
    private readonly onHighlight: (row: HolderRow | null) => void,
    private readonly host?: NotebookHost,
  ) {
    const heads = COLUMNS().map(({ name, className }) => h('th', { class: className, scope: 'col' }, name || what));
    this.table = h(
      'table',
      { class: 'gpumon-processes', 'data-testid': `gpumon-${kind}-table` },
      h('thead', {}, h('tr', {}, ...heads)),
      this.body,
    );
    this.element = h('div', { class: 'gpumon-part' }, this.heading, this.table);
  }

  update(title: string, rows: readonly RowData[], freshness: Freshness): void {
    setText(this.heading, title);
    setShown(this.table, rows.length > 0);
    setShown(this.element, rows.length > 0);
    this.rows.update(rows, (shown, row) => shown.update(row, freshness));
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
  private readonly link = button({ class: 'gpumon-process-link gpumon-process-name' }, () =>
    this.withKernel((kernelId) => this.host?.open(kernelId)),
  );
  private readonly menu: HTMLElement = button(
    { class: 'gpumon-process-menu', 'aria-haspopup': 'menu' },
    () => this.withKernel((kernelId) => this.host?.openMenu(kernelId, this.menu)),
    '⋮',
  );
  private readonly idle = h('span', { class: 'gpumon-process-idle', 'data-testid': 'gpumon-process-idle' });
  private readonly sub = h('span', { class: 'gpumon-process-sub gpumon-narrow' });
  private readonly command = h('span', { class: 'gpumon-process-sub gpumon-wide' });
  private readonly user = h('td', { class: 'gpumon-col-user gpumon-wide' });
  private readonly pid = h('td', { class: 'gpumon-col-pid gpumon-wide' });
  private readonly memory = new ReadingValue('process.memory_bytes');
  private readonly sm = new ReadingValue('process.sm_percent');
  private row: HolderRow | null = null;

  constructor(
    onHighlight: (row: HolderRow | null) => void,
    private readonly host?: NotebookHost,
  ) {
    this.element = h(
      'tr',
      {},
      this.gpu,
      this.pid,
      this.user,
      h(
        'td',
        { class: 'gpumon-col-process' },
        this.swatch,
        h('div', {}, this.name, this.link, this.idle, this.sub, this.command),
      ),
      h('td', { class: 'gpumon-col-number' }, this.memory.element),
      h('td', { class: 'gpumon-col-number' }, this.sm.element, this.menu),
    );
    this.element.addEventListener('pointerenter', () => onHighlight(this.row));
    this.element.addEventListener('pointerleave', () => onHighlight(null));
  }

  update(row: RowData, freshness: Freshness): void {
    if (row.kind !== 'holder') {
      return;
    }
    this.row = row;
    const [first, ...rest] = row.processes;
    const user = textOf(first.user);
    const command = textOf(first.command);
    const pid = String(first.pid);
    setAttribute(this.element, 'data-pid', pid);
    setAttribute(this.element, 'data-process-gpu', String(row.gpu));
    setText(this.gpu, String(row.gpu));
    setPaint(this.swatch, row.slot);
    const commandText = command.reason === null ? command.text : trans.__('command line %1', command.reason);
    const own = row.notebook === null ? null : (this.host?.nameOf(row.notebook.kernel_id) ?? null);
    const name = own === null ? row.name : plainText(own, 120);
    this.showName(name, own !== null);
    const title = [trans.__('%1 (PID %2)', name, pid), commandText, ...rest.map(member)].join('\n');
    setAttribute(this.name, 'title', title);
    setAttribute(this.link, 'title', trans.__('Go to %1', title));
    setText(this.idle, row.idle_ms === null ? '' : trans.__('idle for %1', duration(row.idle_ms)));
    setShown(this.idle, row.idle_ms !== null);
    // A notebook of this Jupyter server is the user's own: its kernel says more than its owner.
    const whose = own === null ? [user.text, pid] : [];
    const kernel = row.notebook?.kernel_name === undefined ? null : plainText(row.notebook.kernel_name, 40);
    const about = [kernel, ...sharedBy(first), runsIn(first), started(rest.length)];
    setText(this.sub, joined([...whose, ...about]));
    setAttribute(
      this.sub,
      'title',
      user.reason === null ? trans.__('user %1, PID %2', user.text, pid) : trans.__('user %1', user.reason),
    );
    const line = command.reason === null && row.notebook === null ? command.text : null;
    setText(this.command, joined([...about, line]));
    setAttribute(this.command, 'title', commandText);
    setText(this.user, user.text);
    setAttribute(this.user, 'title', user.reason);
    setText(this.pid, pid);
    this.memory.update(row.memory_bytes, memoryColumn, freshness);
    this.sm.update(row.sm_percent, percent, freshness);
  }

  /** A notebook of this Jupyter server can be opened, and has a menu. */
  private showName(name: string, isOwn: boolean): void {
    setText(this.name, name);
    setText(this.link, name);
    setAttribute(this.menu, 'aria-label', trans.__('Actions for %1', name));
    setShown(this.name, !isOwn);
    setShown(this.link, isOwn);
    setShown(this.menu, isOwn);
  }

  private withKernel(act: (kernelId: string) => void): void {
    const notebook = this.row?.notebook ?? null;
    if (notebook !== null) {
      act(notebook.kernel_id);
    }
  }
}

/** What a kernel has started, and what counts with it. */
function started(count: number): string | null {
  return count === 0 ? null : trans._n('%1 child process', '%1 child processes', count);
}

/** One of them, on hover. */
function member(process: HolderRow['processes'][number]): string {
  const name = textOf(process.name);
  const shown = name.reason === null ? name.text : processName(process);
  return `+ ${trans.__('%1 (PID %2)', shown, process.pid)}`;
}

/** Says why the processes of a GPU are not listed, or how many of them are not. */
class NoteRow implements Row {
  readonly element: HTMLElement;
  private readonly gpu = h('td', { class: 'gpumon-col-gpu' });
  private readonly reason = h('td', { class: 'gpumon-unreadable', colspan: '3' });

  constructor() {
    const skipped = ['pid', 'user'].map((column) => h('td', { class: `gpumon-col-${column} gpumon-wide` }));
    this.element = h('tr', {}, this.gpu, ...skipped, this.reason);
  }

  update(row: RowData): void {
    setText(this.gpu, String(row.gpu));
    if (row.kind === 'unreadable') {
      setText(this.reason, `${DASH} ${trans.__('processes: %1', row.reason)}`);
    } else if (row.kind === 'omitted') {
      setText(this.reason, trans._n('%1 more process', '%1 more processes', row.count));
    }
  }
}
