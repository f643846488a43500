import type { ComponentChild } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { DASH } from '../../lib/format';
import { trans } from '../../lib/translation';
import type { Level } from '../../model/describe';
import { removeVendorName } from '../../model/gpu';
import { SeverityIcon, severityLabel } from '../alerts';
import { Meter } from '../value';
import { explainUnopenableNode, ShortenedName, NodeLink, type Scene } from './scene';

/** The heights of rows with one line, with two lines, and with wrapped text, in pixels. */
const ONE_LINE_PX = 30;
const TWO_LINES_PX = 50;
const WRAPPED_PX = 46;
/**
 * The number of rows beyond each edge of the screen that are also rendered, so that fast scrolling
 * shows no gaps.
 */
const OVERSCAN = 12;
/** While the user scrolls, the range of rendered rows moves in steps of this many rows. */
const ROW_STEP = 8;
/** The number of rows that are rendered if there is no layout, for example in a test. */
const ROWS_WITHOUT_LAYOUT = 40;

/** The content of a cell and the attributes of its element. */
export interface Cell {
  content: ComponentChild;
  title?: string | undefined;
  level?: Level;
}

export interface Column<Row, Key extends string = never> {
  /** The sort order that a click on the header selects. Columns without `sort` cannot be sorted. */
  sort?: Key | undefined;
  label: string;
  /** The hover text of the header. */
  title?: string | undefined;
  /**
   * The kind of column. Numbers are aligned to the end. A `wide` column is omitted in narrow views.
   * A `long` column gets a line of its own if rows have two lines.
   */
  kind?: 'number' | 'wide' | 'number-wide' | 'long';
  /** The maximum width in pixels. Columns without `width` share the remaining width. */
  width?: number;
  cell: (row: Row) => Cell | string;
}

/** A table and the texts around it. */
interface ListingProps {
  class: string;
  title: string;
  note: string;
  isLoading: boolean;
  /** The text that replaces an empty table. */
  empty: string;
  /** The table; `null` if it has no rows. */
  children: ComponentChild;
}

export function Listing(props: ListingProps) {
  return (
    <div class={props.class} aria-busy={props.isLoading}>
      <div class="gpumon-fleet-caption">
        <h2>{props.title}</h2>
        <p class="gpumon-fleet-note">{props.note}</p>
      </div>
      {props.children ?? <p class="gpumon-empty gpumon-fleet-empty">{props.empty}</p>}
    </div>
  );
}

interface TableProps<Row, Key extends string> {
  id: string;
  name: string;
  columns: readonly Column<Row, Key>[];
  rows: ArrayLike<Row>;
  isNarrow: boolean;
  /** Whether text wraps to two lines in columns of the kinds `long` and `wide`. */
  hasSentences?: boolean;
  sort?: { key: Key; reversed: boolean };
  onSort?: (key: Key) => void;
  /** The index of the selected row; -1 for none. */
  selected?: number;
  /** Called when a row is selected. If it is missing, rows cannot be selected. */
  onSelect?: (row: Row | null) => void;
  onOpen?: (row: Row) => void;
  /** The rows of sums, which are below all other rows and stay visible. */
  sums?: readonly (readonly (Cell | string)[])[];
}

/**
 * A table with any number of rows. Only rows that are visible on the page or in a scrolling parent
 * are rendered. The header and the sums stay visible.
 */
export function Table<Row, Key extends string>(props: TableProps<Row, Key>) {
  const { id, columns, rows, sort, onSort, selected = -1, onSelect, onOpen, sums = [] } = props;
  const table = useRef<HTMLTableElement>(null);
  const mark = useRef<HTMLTableRowElement>(null);
  /** The index of the row that a key press has just selected; -1 for none. */
  const wanted = useRef(-1);
  const wraps = props.hasSentences === true && !props.isNarrow;
  const row_px = props.isNarrow ? TWO_LINES_PX : wraps ? WRAPPED_PX : ONE_LINE_PX;
  const [[from, to], setRange] = useState([0, ROWS_WITHOUT_LAYOUT]);
  const update = useRef<() => void>(() => undefined);
  update.current = () => {
    const { top = 0, height = 0 } = table.current?.getBoundingClientRect() ?? {};
    if (height > 0) {
      const first = Math.floor((-top / row_px - OVERSCAN) / ROW_STEP) * ROW_STEP;
      const end = Math.ceil(((window.innerHeight - top) / row_px + OVERSCAN) / ROW_STEP) * ROW_STEP;
      setRange((last) => (last[0] === first && last[1] === end ? last : [first, end]));
    }
  };
  useLayoutEffect(() => {
    update.current();
    if (wanted.current >= 0 && wanted.current === selected) {
      wanted.current = -1;
      mark.current?.scrollIntoView({ block: 'nearest' });
    }
  });
  useLayoutEffect(() => {
    const onScroll = (): void => update.current();
    // The document is observed, because any parent of the table may scroll.
    document.addEventListener('scroll', onScroll, { capture: true, passive: true });
    window.addEventListener('resize', onScroll);
    return () => {
      document.removeEventListener('scroll', onScroll, { capture: true });
      window.removeEventListener('resize', onScroll);
    };
  }, []);
  const end = Math.min(to, rows.length);
  const first = Math.max(0, Math.min(from, end - 1));
  const onKeyDown = (event: KeyboardEvent): void => {
    const { key, target } = event;
    if (target !== table.current || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const places: Partial<Record<string, number>> = {
      ArrowDown: selected + 1,
      ArrowUp: selected - 1,
      PageDown: selected + 10,
      PageUp: selected - 10,
      Home: 0,
      End: rows.length - 1,
    };
    const place = places[key];
    const row = rows[selected];
    if (place !== undefined) {
      wanted.current = Math.min(rows.length - 1, Math.max(0, place));
      onSelect?.(rows[wanted.current] ?? null);
    } else if (key === 'Enter' && row !== undefined) {
      onOpen?.(row);
    } else if (key === 'Escape' && row !== undefined) {
      onSelect?.(null);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  const isGrid = onSelect !== undefined;
  const lineOf = (cells: readonly (Cell | string)[]): ComponentChild =>
    cells.map((cell, place) => {
      const { content, title, level }: Cell = typeof cell === 'string' ? { content: cell } : cell;
      return (
        <td
          key={place}
          data-kind={columns[place]?.kind}
          role={isGrid ? 'gridcell' : 'cell'}
          data-level={level}
          title={title}
        >
          {content}
        </td>
      );
    });
  return (
    <table
      ref={table}
      class="gpumon-table"
      data-testid={id}
      data-wraps={wraps ? '' : undefined}
      aria-label={props.name}
      aria-rowcount={rows.length + 1 + sums.length}
      aria-activedescendant={selected >= first && selected < end ? `${id}-${selected}` : undefined}
      role={isGrid ? 'grid' : 'table'}
      tabIndex={isGrid ? 0 : undefined}
      onKeyDown={isGrid ? onKeyDown : undefined}
      style={{
        '--_row': `${row_px}px`,
        '--_wide': gridTracks(columns),
        '--_narrow': gridTracks(columns.filter(({ kind = '' }) => !kind.includes('wide'))),
      }}
    >
      <thead>
        <tr role="row" aria-rowindex={1}>
          {columns.map(({ label, kind, title, sort: key }) => (
            <th
              key={label}
              data-kind={kind}
              role="columnheader"
              title={title}
              aria-sort={ariaSortValue(key, sort, kind)}
            >
              {key === undefined ? (
                label
              ) : (
                <button type="button" class="gpumon-table-sort" onClick={() => onSort?.(key)}>
                  {label}
                </button>
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody
        style={{
          paddingTop: `${first * row_px}px`,
          paddingBottom: `${(rows.length - end) * row_px}px`,
        }}
      >
        <tr
          ref={mark}
          class="gpumon-table-mark"
          aria-hidden="true"
          style={{ top: `${selected * row_px}px` }}
        />
        {Array.from({ length: end - first }, (_, i) => {
          const place = first + i;
          const row = rows[place] as Row;
          return (
            <tr
              key={place}
              id={`${id}-${place}`}
              role="row"
              aria-rowindex={place + 2}
              aria-selected={isGrid ? place === selected : undefined}
              onClick={() => onSelect?.(row)}
              onDblClick={() => onOpen?.(row)}
            >
              {lineOf(columns.map(({ cell }) => cell(row)))}
            </tr>
          );
        })}
      </tbody>
      {sums.length > 0 && (
        <tfoot>
          {sums.map((cells, place) => (
            <tr key={place} role="row" aria-rowindex={rows.length + place + 2}>
              {lineOf(cells)}
            </tr>
          ))}
        </tfoot>
      )}
    </table>
  );
}

/**
 * Returns the tracks of the table's CSS grid. Columns with a width may shrink a little; the other
 * columns share the remaining width.
 */
function gridTracks(columns: readonly Pick<Column<never>, 'width'>[]): string {
  return columns
    .map(({ width }) =>
      width === undefined ? 'minmax(60px,1fr)' : `minmax(${width * 0.85}px,${width}px)`,
    )
    .join(' ');
}

/**
 * Returns how a column is sorted. By default, numbers start with the highest, and states with the
 * worst.
 */
function ariaSortValue(
  key: string | undefined,
  by: { key: string; reversed: boolean } | undefined,
  kind = '',
): 'none' | 'ascending' | 'descending' | undefined {
  const isFalling = kind.startsWith('number') || key === 'worst';
  const direction = isFalling === by?.reversed ? 'ascending' : 'descending';
  return key === undefined ? key : key === by?.key ? direction : 'none';
}

/** A sentence with commands between backticks. */
export function Sentence({ text }: { text: string }) {
  return (
    <span class="gpumon-table-sentence">
      {text
        .split('`')
        .map((part, place) => (place % 2 === 1 ? <code key={place}>{part}</code> : part))}
    </span>
  );
}

/**
 * Returns a cell with a text. If the text is `null`, the cell shows a dash, and `missing` is the
 * reason.
 */
export function textCell(text: string | null, missing?: string): Cell {
  return text === null
    ? { content: DASH, title: missing ?? trans.__('no reading') }
    : { content: text, title: text };
}

/** Returns a cell with the model name of a GPU without its vendor. `before` precedes the name. */
export function modelCell(model: string | null, before = ''): Cell {
  return { ...textCell(model && before + removeVendorName(model)), ...(model && { title: model }) };
}

/** Returns a cell with the name of a node. The name is a link if the node can be opened. */
export function nodeCell(scene: Scene, node: number, rest = ''): Cell {
  const title = scene.columns.nodeNames[node] ?? '';
  const reason = explainUnopenableNode(scene.columns, node);
  const name = <ShortenedName text={title} rest={rest} />;
  if (reason !== null) {
    return { content: name, title: trans.__('Cannot be opened: %1', reason) };
  }
  const content = (
    <NodeLink scene={scene} node={node} class="gpumon-table-node">
      {name}
    </NodeLink>
  );
  return { content, title };
}

/** Returns a cell with a state and the icon of its level. */
export function stateCell(text: string, level: Level, title = ''): Cell {
  return { content: <State text={text} level={level} />, level, title: title || text };
}

export function State({ text, level }: { text: string; level: string }) {
  return (
    <>
      <SeverityIcon />
      <span class="gpumon-visually-hidden">{severityLabel(level)}</span>
      <span>{text}</span>
    </>
  );
}

/**
 * Returns a cell with a value and a bar that shows its share. If the share is NaN, the bar is
 * hidden.
 */
export function meterCell(text: string, share: number, color: string, title?: string): Cell {
  const content = (
    <span class="gpumon-table-measured">
      <Meter share={share} color={color} />
      <span>{text}</span>
    </span>
  );
  return { content, title };
}
