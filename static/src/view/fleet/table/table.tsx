import type { ComponentChild } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import type { Level } from '../../../model/describe';

/** The height of a row in pixels, with one line and with two. */
const ROW_PX = { oneLine: 30, twoLines: 50 };
/** Rows beyond the edges of the screen, so that fast scrolling shows no gaps. */
const OVERSCAN = 12;
/** The first and the last row in the page change in steps of so many. */
const STEP = 8;
/** How many rows there are without a layout, as in a test. */
const UNSEEN = 40;

/** What a cell shows, and attributes of its element. */
export interface Cell {
  content: ComponentChild;
  title?: string | undefined;
  level?: Level;
}

export interface Column<Row, Key extends string> {
  /** The order that a click on the head chooses; without it, the column does not sort. */
  sort?: Key;
  label: string;
  /** An explanation on hover. */
  title?: string;
  /** Numbers are aligned to the end. */
  isNumber?: boolean;
  /** Whether the column is left out in narrower views. */
  isWide?: boolean;
  /** Whether the column has a line of its own in rows of several lines. */
  isLong?: boolean;
  /** The most that the column takes, in pixels; the others share the rest. */
  width?: number;
  cell: (row: Row) => Cell | string;
}

/** The rows in the page. */
type Range = readonly [first: number, end: number];

export interface TableProps<Row, Key extends string> {
  id: string;
  name: string;
  columns: readonly Column<Row, Key>[];
  rows: ArrayLike<Row>;
  sort?: { key: Key; reversed: boolean };
  onSort?: (key: Key) => void;
  /** The place of the selected row; -1 for none. */
  selected?: number;
  /** Makes rows selectable. */
  onSelect?: (row: Row | null) => void;
  onOpen?: (row: Row) => void;
  /** The cells of sums, which stay below the other rows. */
  sums?: readonly (readonly (Cell | string)[])[];
  hasTwoLines: boolean;
}

/**
 * A table of any number of rows, of which only those on the screen are in the page. The page or an
 * element around the table scrolls; its head stays visible.
 */
export function Table<Row, Key extends string>(props: TableProps<Row, Key>): ComponentChild {
  const { id, columns, rows, sort, onSort, selected = -1, onSelect, onOpen, sums = [] } = props;
  const table = useRef<HTMLTableElement>(null);
  const row_px = props.hasTwoLines ? ROW_PX.twoLines : ROW_PX.oneLine;
  const [range, setRange] = useState<Range>([0, UNSEEN]);
  const update = useRef<() => void>(() => undefined);
  update.current = () => {
    const next = visibleRange(table.current, rows.length, row_px);
    setRange((last) => (last[0] === next[0] && last[1] === next[1] ? last : next));
  };
  useLayoutEffect(() => update.current());
  useLayoutEffect(() => {
    const onScroll = (): void => update.current();
    // Any element around the table can scroll.
    document.addEventListener('scroll', onScroll, { capture: true, passive: true });
    window.addEventListener('resize', onScroll);
    return () => {
      document.removeEventListener('scroll', onScroll, { capture: true });
      window.removeEventListener('resize', onScroll);
    };
  }, []);
  const end = Math.min(range[1], rows.length);
  const first = Math.min(range[0], end);
  const onKeyDown = (event: KeyboardEvent): void => {
    const element = table.current;
    const isOther = event.target !== element || event.ctrlKey || event.metaKey || event.altKey;
    if (element === null || isOther) {
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
    const place = places[event.key];
    const row = rows[selected];
    if (place !== undefined) {
      const bounded = Math.min(rows.length - 1, Math.max(0, place));
      onSelect?.(rows[bounded] ?? null);
      reveal(element, bounded, row_px);
    } else if (event.key === 'Enter' && row !== undefined) {
      onOpen?.(row);
    } else if (event.key === 'Escape' && row !== undefined) {
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
          {...attributesOf(columns[place])}
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
      aria-label={props.name}
      aria-rowcount={rows.length + 1 + sums.length}
      aria-activedescendant={selected >= first && selected < end ? `${id}-${selected}` : undefined}
      role={isGrid ? 'grid' : 'table'}
      tabIndex={isGrid ? 0 : undefined}
      onKeyDown={isGrid ? onKeyDown : undefined}
      style={{
        '--_row': `${row_px}px`,
        '--_wide': tracksOf(columns),
        '--_narrow': tracksOf(columns.filter(({ isWide }) => isWide !== true)),
      }}
    >
      <thead>
        <tr role="row" aria-rowindex={1}>
          {columns.map((column) => (
            <th
              key={column.label}
              {...attributesOf(column)}
              role="columnheader"
              title={column.title}
              aria-sort={sortOf(column, sort)}
            >
              {column.sort === undefined ? (
                column.label
              ) : (
                <button
                  type="button"
                  class="gpumon-table-sort"
                  onClick={() => column.sort !== undefined && onSort?.(column.sort)}
                >
                  {column.label}
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

function attributesOf<Row, Key extends string>(
  column: Column<Row, Key> | undefined,
): Record<string, string | boolean | undefined> {
  return {
    class: column?.isWide === true ? 'gpumon-wide' : undefined,
    'data-number': column?.isNumber,
    'data-long': column?.isLong,
  };
}

/** The tracks of a grid: columns with a width shrink a little, and the others share the rest. */
function tracksOf(columns: readonly Pick<Column<never, never>, 'width'>[]): string {
  return columns
    .map(({ width }) =>
      width === undefined
        ? 'minmax(80px, 1fr)'
        : `minmax(${Math.round(width * 0.7)}px, ${width}px)`,
    )
    .join(' ');
}

/** Numbers start with the highest. */
function sortOf<Row, Key extends string>(
  { sort, isNumber = false }: Column<Row, Key>,
  by: { key: Key; reversed: boolean } | undefined,
): 'none' | 'ascending' | 'descending' | undefined {
  return sort === undefined
    ? undefined
    : sort !== by?.key
      ? 'none'
      : isNumber === by.reversed
        ? 'ascending'
        : 'descending';
}

function visibleRange(table: HTMLElement | null, count: number, row_px: number): Range {
  const { top = 0, height = 0 } = table?.getBoundingClientRect() ?? {};
  if (height === 0) {
    return [0, UNSEEN];
  }
  const first = Math.floor(-top / row_px) - OVERSCAN;
  const end = Math.ceil((window.innerHeight - top) / row_px) + OVERSCAN;
  return [
    Math.max(0, Math.min(count - 1, Math.floor(first / STEP) * STEP)),
    Math.min(count, Math.ceil(end / STEP) * STEP),
  ];
}

/** Scrolls a row to where it is visible. */
function reveal(table: HTMLTableElement, place: number, row_px: number): void {
  const scroller = scrollerOf(table);
  const screen = scroller?.getBoundingClientRect() ?? { top: 0, bottom: window.innerHeight };
  const head = table.tHead?.getBoundingClientRect().bottom ?? 0;
  const foot = table.tFoot?.offsetHeight ?? 0;
  const row = (table.tBodies[0] ?? table).getBoundingClientRect().top + place * row_px;
  const above = row - Math.max(screen.top, head);
  const below = row + row_px - (screen.bottom - foot);
  const by = above < 0 ? above : Math.max(0, below);
  if (by !== 0) {
    (scroller ?? window).scrollBy({ top: by, behavior: 'instant' });
  }
}

/** The element that scrolls around an element; `null` for the page. */
function scrollerOf(element: HTMLElement): HTMLElement | null {
  for (let at = element.parentElement; at !== null && at !== document.body; at = at.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(at).overflowY) && at.scrollHeight > at.clientHeight) {
      return at;
    }
  }
  return null;
}
