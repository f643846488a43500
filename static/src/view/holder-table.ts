/** The holders of GPUs: notebooks, consoles, then all others. Each shows its command line on demand. */

import { button, h, KeyedRows, setAttribute, setShown, setText } from '../lib/dom';
import { DASH, duration, memoryAmount, memoryColumn, percent, since } from '../lib/format';
import { grouped } from '../lib/grouped';
import { joined, plainText } from '../lib/text';
import { table, trans } from '../lib/translation';
import { processName, textOf, type HolderRow, type ListRow as RowData } from '../model/holders';
import { runsIn } from '../model/owner';
import { valueOf } from '../model/reading';
import type { NotebookHost } from './notebook-host';
import { setPaint } from './palette';
import { ReadingValue, type Freshness } from './value';

const COLUMNS = table(() => [
  { name: trans.__('GPU'), className: 'gpumon-col-gpu' },
  { name: 'PID', className: 'gpumon-col-pid gpumon-wide' },
  { name: trans.__('User'), className: 'gpumon-col-user gpumon-wide' },
  { name: '', className: 'gpumon-col-process' },
  { name: trans.__('Age'), className: 'gpumon-col-age gpumon-wide' },
  { name: trans.__('Host memory'), className: 'gpumon-col-number gpumon-col-host gpumon-wide' },
  { name: trans.__('Memory'), className: 'gpumon-col-number' },
  { name: 'SM', className: 'gpumon-col-number' },
]);

/** So many rows leave room for the rest; the others come on demand. */
const SHORT = 24;

export class HolderTable {
  readonly element = h('section', { class: 'gpumon-section', 'aria-label': trans.__('Processes') });
  private readonly notebooks: HolderSection;
  private readonly consoles: HolderSection;
  private readonly others: HolderSection;
  private readonly empty = h('p', { class: 'gpumon-empty' });

  constructor(
    invalidate: () => void,
    onHighlight: (row: HolderRow | null) => void,
    host?: NotebookHost,
  ) {
    this.notebooks = new HolderSection(
      'notebook',
      trans.__('Notebook'),
      invalidate,
      onHighlight,
      host,
    );
    this.consoles = new HolderSection(
      'console',
      trans.__('Console'),
      invalidate,
      onHighlight,
      host,
    );
    this.others = new HolderSection('process', trans.__('Process'), invalidate, onHighlight);
    this.element.append(
      this.notebooks.element,
      this.consoles.element,
      this.others.element,
      this.empty,
    );
  }

  /** Of `all` rows, those that are chosen. */
  update(rows: readonly RowData[], all: readonly RowData[], freshness: Freshness): void {
    const {
      notebooks = [],
      consoles = [],
      others = [],
    } = Object.fromEntries(grouped(rows, sectionOf));
    this.notebooks.update(trans.__('Notebooks'), notebooks, freshness);
    this.consoles.update(trans.__('Consoles'), consoles, freshness);
    const isAll = notebooks.length + consoles.length === 0;
    this.others.update(
      isAll ? trans.__('Processes') : trans.__('Other processes'),
      others,
      freshness,
    );
    // The heading stays where there is nothing below it but these words.
    setShown(this.others.element, others.length > 0 || isAll);
    setShown(this.empty, rows.length === 0);
    setText(
      this.empty,
      all.length === 0
        ? trans.__('No process holds a GPU.')
        : trans.__('No process matches the filter.'),
    );
  }
}

function sectionOf(row: RowData): 'notebooks' | 'consoles' | 'others' {
  return row.kind !== 'holder' || row.notebook === null
    ? 'others'
    : row.isConsole
      ? 'consoles'
      : 'notebooks';
}

class HolderSection {
  readonly element: HTMLElement;
  private readonly heading = h('h2');
  private readonly body = h('tbody');
  private readonly table: HTMLTableElement;
  private readonly more: HTMLElement;
  private whole = false;
  private readonly rows = new KeyedRows<RowData, Row>(
    this.body,
    ({ key }) => key,
    ({ kind }) =>
      kind === 'holder' ? new ReadableRow(this.onHighlight, this.host) : new NoteRow(),
  );

  constructor(
    kind: 'notebook' | 'console' | 'process',
    what: string,
    invalidate: () => void,
    private readonly onHighlight: (row: HolderRow | null) => void,
    private readonly host?: NotebookHost,
  ) {
    const heads = COLUMNS().map(({ name, className }) =>
      h('th', { class: className, scope: 'col' }, name || what),
    );
    this.table = h(
      'table',
      { class: 'gpumon-processes', 'data-testid': `gpumon-${kind}-table` },
      h('thead', {}, h('tr', {}, ...heads)),
      this.body,
    );
    this.more = button({ class: 'gpumon-chip' }, () => {
      this.whole = !this.whole;
      invalidate();
    });
    this.element = h('div', { class: 'gpumon-part' }, this.heading, this.table, this.more);
  }

  update(title: string, rows: readonly RowData[], freshness: Freshness): void {
    setText(this.heading, title);
    setShown(this.table, rows.length > 0);
    setShown(this.element, rows.length > 0);
    this.rows.update(this.whole ? rows : rows.slice(0, SHORT), (shown, row) =>
      shown.update(row, freshness),
    );
    setShown(this.more, rows.length > SHORT);
    setText(this.more, this.whole ? trans.__('Show fewer') : trans.__('Show all %1', rows.length));
    setAttribute(this.more, 'aria-expanded', String(this.whole));
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
  /** Opens a notebook of this place, and the command line of anything else. */
  private readonly name = button(
    { class: 'gpumon-process-link gpumon-process-name', 'data-testid': 'gpumon-process-name' },
    () => {
      if (this.isOwn()) {
        this.withKernel((kernelId) => this.host?.open(kernelId));
      } else {
        this.setOpen(!this.isOpen());
      }
    },
  );
  private readonly menu: HTMLElement = button(
    { class: 'gpumon-process-menu', 'aria-haspopup': 'menu' },
    () => this.withKernel((kernelId) => this.host?.openMenu(kernelId, this.menu)),
    '⋮',
  );
  private readonly idle = h('span', {
    class: 'gpumon-process-idle',
    'data-testid': 'gpumon-process-idle',
  });
  private readonly sub = h('span', { class: 'gpumon-process-sub gpumon-narrow' });
  private readonly wideSub = h('span', { class: 'gpumon-process-sub gpumon-wide' });
  private readonly more = h('span', {
    class: 'gpumon-process-more',
    'data-testid': 'gpumon-process-more',
  });
  private readonly age = h('td', { class: 'gpumon-col-age gpumon-wide' });
  private readonly user = h('td', { class: 'gpumon-col-user gpumon-wide' });
  private readonly pid = h('td', { class: 'gpumon-col-pid gpumon-wide' });
  private readonly hostMemory = new ReadingValue('process.host_memory_bytes');
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
        h('div', {}, this.name, this.idle, this.sub, this.wideSub, this.more),
      ),
      this.age,
      h('td', { class: 'gpumon-col-number gpumon-col-host gpumon-wide' }, this.hostMemory.element),
      h('td', { class: 'gpumon-col-number' }, this.memory.element),
      h('td', { class: 'gpumon-col-number' }, this.sm.element, this.menu),
    );
    setShown(this.more, false);
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
    const { name, isOwn } = row;
    const path = row.path === null ? null : plainText(row.path);
    const commandText =
      command.reason === null ? command.text : trans.__('command line %1', command.reason);
    const details = [
      trans.__('%1 (PID %2)', path ?? name, pid),
      commandText,
      ...rest.map(member),
    ].join('\n');
    setText(this.name, name);
    setAttribute(this.name, 'title', isOwn ? trans.__('Go to %1', details) : details);
    setAttribute(this.name, 'aria-expanded', isOwn ? null : String(this.isOpen()));
    setAttribute(this.menu, 'aria-label', trans.__('Actions for %1', name));
    setShown(this.menu, isOwn);
    setText(this.more, details);
    setText(this.idle, row.idle_ms === null ? '' : trans.__('idle for %1', duration(row.idle_ms)));
    setShown(this.idle, row.idle_ms !== null);
    const started_ms = valueOf(first.started_ms);
    const age = started_ms === null ? DASH : duration(freshness.now_ms - started_ms);
    const began =
      started_ms === null ? null : trans.__('started %1', since(started_ms, freshness.now_ms));
    // A notebook of this Jupyter server is the user's own: its kernel says more than its owner.
    const kernel =
      row.notebook?.kernel_name === undefined ? null : plainText(row.notebook.kernel_name, 40);
    const about = [kernel, ...row.shared, runsIn(first), childProcesses(rest.length)];
    setText(
      this.sub,
      joined([isOwn ? null : user.text, started_ms === null ? null : age, ...about]),
    );
    const whose =
      user.reason === null
        ? trans.__('user %1, PID %2', user.text, pid)
        : trans.__('user %1', user.reason);
    const hostBytes = valueOf(row.host_memory_bytes);
    const hosted = hostBytes === null ? null : trans.__('host memory %1', memoryColumn(hostBytes));
    setAttribute(this.sub, 'title', joined([whose, began, hosted], '\n'));
    setText(this.wideSub, joined(about));
    setText(this.user, user.text);
    setAttribute(this.user, 'title', user.reason);
    setText(this.pid, pid);
    setText(this.age, age);
    setAttribute(this.age, 'title', began);
    this.hostMemory.update(row.host_memory_bytes, memoryColumn, freshness);
    this.memory.update(row.memory_bytes, memoryColumn, freshness);
    this.sm.update(row.sm_percent, percent, freshness);
  }

  /** Whether it is a notebook of this Jupyter server, which can be opened, and has a menu. */
  private isOwn(): boolean {
    return this.menu.hidden === false;
  }

  private isOpen(): boolean {
    return this.more.hidden === false;
  }

  private setOpen(open: boolean): void {
    setShown(this.more, open);
    setAttribute(this.name, 'aria-expanded', String(open));
  }

  private withKernel(act: (kernelId: string) => void): void {
    const notebook = this.row?.notebook ?? null;
    if (notebook !== null) {
      act(notebook.kernel_id);
    }
  }
}

/** What a kernel has started, and what counts with it. */
function childProcesses(count: number): string | null {
  return count === 0 ? null : trans._n('%1 child process', '%1 child processes', count);
}

/** One of them, on hover. */
function member(process: HolderRow['processes'][number]): string {
  const name = textOf(process.name);
  const shown = name.reason === null ? name.text : processName(process);
  return `+ ${trans.__('%1 (PID %2)', shown, process.pid)}`;
}

/** Says why the processes of a GPU are not listed, how many of them are not, or to whom it is given. */
class NoteRow implements Row {
  readonly element: HTMLElement;
  private readonly gpu = h('td', { class: 'gpumon-col-gpu' });
  private readonly reason = h('td', { class: 'gpumon-unreadable', colspan: '3' });

  constructor() {
    const wide = (also = ''): HTMLElement => h('td', { class: `gpumon-wide ${also}`.trim() });
    this.element = h(
      'tr',
      {},
      this.gpu,
      wide(),
      wide(),
      this.reason,
      wide('gpumon-col-host'),
      wide(),
    );
  }

  update(row: RowData): void {
    setText(this.gpu, String(row.gpu));
    if (row.kind === 'unreadable') {
      setText(this.reason, `${DASH} ${trans.__('processes: %1', row.reason)}`);
    } else if (row.kind === 'omitted') {
      setText(this.reason, trans._n('%1 more process', '%1 more processes', row.count));
    } else if (row.kind === 'unlisted') {
      const size = memoryAmount(row.bytes);
      setText(
        this.reason,
        trans.__('processes of other namespaces are not visible: %1 in use', size),
      );
    } else if (row.kind === 'allocated') {
      setText(this.reason, trans.__('allocated to %1, no process', row.to));
    }
  }
}
