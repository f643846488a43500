/** The tables of GPU memory holders: notebooks, consoles, and all other processes. */

import { useRef, useState } from 'preact/hooks';

import {
  DASH,
  formatDuration,
  formatMemoryAmount,
  formatMemoryColumn,
  formatPercent,
  formatTimeWithDateUnlessToday,
} from '../lib/format';
import { groupBy } from '../lib/collections';
import { joinParts, plainText } from '../lib/text';
import { lazyTexts, trans } from '../lib/translation';
import { processName, textOf, type HolderRow, type ListRow } from '../model/holders';
import { describeOwner } from '../model/owner';
import { valueOf } from '../model/reading';
import type { NotebookHost } from './notebook';
import { useThrottledRender } from './component-view';
import { makePaint } from './palette';
import { useShortList } from './sections';
import { ReadingValue, type Freshness } from './value';

const COLUMNS = lazyTexts(() => [
  { name: trans.__('GPU'), className: 'gpumon-col-gpu' },
  { name: 'PID', className: 'gpumon-col-pid gpumon-wide' },
  { name: trans.__('User'), className: 'gpumon-col-user gpumon-wide' },
  { name: '', className: 'gpumon-col-process' },
  { name: trans.__('Age'), className: 'gpumon-col-age gpumon-wide' },
  { name: trans.__('Host memory'), className: 'gpumon-col-number gpumon-col-host gpumon-wide' },
  { name: trans.__('Memory'), className: 'gpumon-col-number' },
  { name: 'SM', className: 'gpumon-col-number' },
]);

/** The number of rows of a section before it is expanded. */
const INITIAL_ROWS = 24;

type HolderKind = 'notebook' | 'console' | 'process';

interface TableContext {
  freshness: Freshness;
  /** Called with the row under the pointer; `null` if there is none. */
  onHighlight: (row: HolderRow | null) => void;
  host: NotebookHost | undefined;
}

interface HolderTableProps extends TableContext {
  /** The displayed rows of `all`. */
  rows: readonly ListRow[];
  all: readonly ListRow[];
}

export function HolderTable({ rows, all, ...context }: HolderTableProps) {
  const section = useRef<HTMLElement>(null);
  const content = useThrottledRender(section, context.freshness.now_ms, () => {
    const byKind = groupBy(rows, kindOf);
    const others = byKind.size === 0 || (byKind.size === 1 && byKind.has('process'));
    const shown: [HolderKind, title: string, what: string][] = [
      ['notebook', trans.__('Notebooks'), trans.__('Notebook')],
      ['console', trans.__('Consoles'), trans.__('Console')],
      [
        'process',
        others ? trans.__('Processes') : trans.__('Other processes'),
        trans.__('Process'),
      ],
    ];
    return (
      <>
        {shown.map(([kind, title, what]) => {
          const own = byKind.get(kind) ?? [];
          return (
            // The section of processes is shown even if it contains only a message.
            (own.length > 0 || (kind === 'process' && others)) && (
              <HolderSection key={kind} {...{ kind, title, what, rows: own, context }} />
            )
          );
        })}
        {rows.length === 0 && (
          <p class="gpumon-empty">
            {all.length === 0
              ? trans.__('No process holds a GPU.')
              : trans.__('No process matches the filter.')}
          </p>
        )}
      </>
    );
  });
  return (
    <section class="gpumon-section gpumon-holders" aria-label={trans.__('Processes')} ref={section}>
      {content}
    </section>
  );
}

function kindOf(row: ListRow): HolderKind {
  return row.kind !== 'holder' || row.notebook === null
    ? 'process'
    : row.isConsole
      ? 'console'
      : 'notebook';
}

function HolderSection({
  kind,
  title,
  what,
  rows,
  context,
}: {
  kind: HolderKind;
  title: string;
  what: string;
  rows: readonly ListRow[];
  context: TableContext;
}) {
  const [shown, showAllButton] = useShortList(rows, INITIAL_ROWS);
  return (
    <div class="gpumon-part">
      <h2>{title}</h2>
      {rows.length > 0 && (
        <table class="gpumon-processes" data-testid={`gpumon-${kind}-table`}>
          <thead>
            <tr>
              {COLUMNS().map(({ name, className }, place) => (
                <th class={className} scope="col" key={place}>
                  {name || what}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) =>
              row.kind === 'holder' ? (
                <Holder key={row.key} row={row} {...context} />
              ) : (
                <NoteRow key={row.key} gpu={row.gpu} note={describeNote(row)} />
              ),
            )}
          </tbody>
        </table>
      )}
      {showAllButton}
    </div>
  );
}

function Holder({ row, freshness, onHighlight, host }: TableContext & { row: HolderRow }) {
  const [isOpen, setOpen] = useState(false);
  const { name, isOwn, gpu } = row;
  const [first, ...rest] = row.processes;
  const { pid } = first;
  const user = textOf(first.user);
  const command = textOf(first.command);
  const details = [
    trans.__('%1 (PID %2)', row.path === null ? name : plainText(row.path), pid),
    command.reason === null ? command.text : trans.__('command line %1', command.reason),
    ...rest.map(describeFurtherProcess),
  ].join('\n');
  const started_ms = valueOf(first.started_ms);
  const age = started_ms === null ? null : formatDuration(freshness.now_ms - started_ms);
  const began =
    started_ms === null
      ? undefined
      : trans.__('started %1', formatTimeWithDateUnlessToday(started_ms, freshness.now_ms));
  // A notebook of this Jupyter server belongs to the current user, so the name of its kernel is
  // more useful than the user name.
  const kernelName = row.notebook?.kernel_name;
  const about = [
    kernelName === undefined ? null : plainText(kernelName, 40),
    ...row.shared,
    describeOwner(first),
    rest.length === 0 ? null : trans._n('%1 child process', '%1 child processes', rest.length),
  ];
  const owner =
    user.reason === null
      ? trans.__('user %1, PID %2', user.text, pid)
      : trans.__('user %1', user.reason);
  const hostBytes = valueOf(row.host_memory_bytes);
  const hosted =
    hostBytes === null ? null : trans.__('host memory %1', formatMemoryColumn(hostBytes));
  const kernelId = row.notebook?.kernel_id ?? '';
  const reading = (
    field: 'host_memory_bytes' | 'memory_bytes' | 'sm_percent',
    format: (value: number) => string,
  ) => <ReadingValue id={`process.${field}`} reading={row[field]} {...{ format, freshness }} />;
  return (
    <tr
      data-pid={pid}
      data-process-gpu={gpu}
      onPointerEnter={() => onHighlight(row)}
      onPointerLeave={() => onHighlight(null)}
    >
      <td class="gpumon-col-gpu">{gpu}</td>
      <td class="gpumon-col-pid gpumon-wide">{pid}</td>
      <td class="gpumon-col-user gpumon-wide" title={user.reason ?? undefined}>
        <bdi>{user.text}</bdi>
      </td>
      <td class="gpumon-col-process">
        <span class="gpumon-swatch" aria-hidden="true" {...makePaint(row.slot)} />
        <div>
          <button
            type="button"
            class="gpumon-process-link gpumon-process-name"
            data-testid="gpumon-process-name"
            // This attribute prevents a PID from being truncated if it is shown instead of a name.
            data-unnamed={valueOf(first.name) === null && row.path === null ? '' : undefined}
            title={isOwn ? trans.__('Go to %1', details) : details}
            aria-expanded={isOwn ? undefined : isOpen}
            onClick={() => (isOwn ? host?.open(kernelId) : setOpen(!isOpen))}
          >
            <bdi>{name}</bdi>
          </button>
          {row.idle_ms !== null && (
            <span class="gpumon-process-idle" data-testid="gpumon-process-idle">
              {trans.__('idle for %1', formatDuration(row.idle_ms))}
            </span>
          )}
          <span
            class="gpumon-process-sub gpumon-narrow"
            title={joinParts([owner, began, hosted], '\n')}
          >
            {joinParts([isOwn ? null : user.text, age, ...about])}
          </span>
          <span class="gpumon-process-sub gpumon-wide">{joinParts(about)}</span>
          {isOpen && !isOwn && (
            <span class="gpumon-process-more" data-testid="gpumon-process-more" dir="auto">
              {details}
            </span>
          )}
        </div>
      </td>
      <td class="gpumon-col-age gpumon-wide" title={began}>
        {age ?? DASH}
      </td>
      <td class="gpumon-col-number gpumon-col-host gpumon-wide">
        {reading('host_memory_bytes', formatMemoryColumn)}
      </td>
      <td class="gpumon-col-number">{reading('memory_bytes', formatMemoryColumn)}</td>
      <td class="gpumon-col-number">
        {reading('sm_percent', formatPercent)}
        {isOwn && (
          <button
            type="button"
            class="gpumon-process-menu"
            aria-haspopup="menu"
            aria-label={trans.__('Actions for %1', name)}
            onClick={({ currentTarget }) => host?.openMenu(kernelId, currentTarget)}
          >
            ⋮
          </button>
        )}
      </td>
    </tr>
  );
}

/** Returns text such as `+ python (PID 4711)` for a process of a holder other than the first. */
function describeFurtherProcess(process: HolderRow['processes'][number]): string {
  const name = textOf(process.name);
  const shown = name.reason === null ? name.text : processName(process);
  return `+ ${trans.__('%1 (PID %2)', shown, process.pid)}`;
}

/** A row with a message about the processes of a GPU. */
function NoteRow({ gpu, note }: { gpu: number; note: string }) {
  return (
    <tr>
      <td class="gpumon-col-gpu">{gpu}</td>
      <td class="gpumon-wide" />
      <td class="gpumon-wide" />
      <td class="gpumon-unreadable" colSpan={3}>
        {note}
      </td>
      <td class="gpumon-wide gpumon-col-host" />
      <td class="gpumon-wide" />
    </tr>
  );
}

function describeNote(row: Exclude<ListRow, HolderRow>): string {
  switch (row.kind) {
    case 'unreadable':
      return `${DASH} ${trans.__('processes: %1', row.reason)}`;
    case 'omitted':
      return trans._n('%1 more process', '%1 more processes', row.count);
    case 'unlisted':
      return trans.__(
        'processes of other namespaces are not visible: %1 in use',
        formatMemoryAmount(row.bytes),
      );
    case 'allocated':
      return trans.__('allocated to %1, no process', row.to);
  }
}
