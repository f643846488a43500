/**
 * A table of any number of rows, of which those on the screen are in the page. It stands in the flow of the page, which
 * scrolls; the head stays in sight.
 */

import { button, h, setAttribute, setShown, setStyle, setText } from '../../../lib/dom';

/** The height of a row in pixels; the style sheet has the same. */
export const ROW_PX = 30;
/** Rows beyond the edges of the screen, so that a fast wheel meets no emptiness. */
const OVERSCAN = 12;
/** A column that is narrower has room for an icon alone. */
const TIGHT_PX = 60;
/** Without a layout, as in a test, so many are there. */
const UNSEEN = 40;

/** A column; `Cell` writes what it shows. */
export interface Column<Row, Key extends string> {
  /** What it sorts by; left out where it does not. */
  sort?: Key;
  label: string;
  /** What it means, on hover. */
  title?: string;
  /** `number` is aligned to the right. */
  kind: 'name' | 'text' | 'number';
  /** Left out where there is little room. */
  wide?: boolean;
  /** Its width in pixels; those without share what is left. */
  width?: number;
  /** The same where there is little room. */
  narrow?: number;
  write: (cell: HTMLElement, row: Row) => void;
}

export interface TableOptions<Row, Key extends string> {
  name: string;
  columns: readonly Column<Row, Key>[];
  onSort?: (key: Key) => void;
  onSelect?: (row: Row | null) => void;
  onOpen?: (row: Row) => void;
  /** Keys that mean nothing to the table. */
  id: string;
}

export interface TableContent<Row, Key extends string> {
  count: number;
  /** Returns the row at a place; `undefined` if there is none. */
  rowAt: (place: number) => Row | undefined;
  /** How rows are sorted, if they are. */
  sort?: { key: Key; reversed: boolean };
  /** The place of the row that is selected; -1 for none. */
  selected?: number;
  /** Rows of sums, which stay below the other rows in every order. */
  sums?: readonly Row[];
}

export class Table<Row, Key extends string> {
  readonly element: HTMLElement;
  private readonly body = h('tbody', {});
  private readonly foot = h('tfoot', {});
  private readonly sums: { element: HTMLTableRowElement; cells: HTMLElement[] }[] = [];
  private readonly above = h(
    'tr',
    { class: 'gpumon-table-space', 'aria-hidden': 'true' },
    h('td', {}),
  );
  private readonly below = h(
    'tr',
    { class: 'gpumon-table-space', 'aria-hidden': 'true' },
    h('td', {}),
  );
  private readonly rows: { element: HTMLTableRowElement; cells: HTMLElement[]; place: number }[] =
    [];
  private readonly heads: { element: HTMLElement; column: Column<Row, Key> }[];
  private content: TableContent<Row, Key> | null = null;
  private readonly onScroll = (): void => {
    if (!this.element.hidden && this.element.isConnected) {
      this.fill();
    }
  };

  constructor(private readonly options: TableOptions<Row, Key>) {
    const { columns, name, onSort, onSelect } = options;
    this.heads = columns.map((column) => {
      const { sort, label, title, kind, wide, width, narrow } = column;
      const element = h('th', {
        scope: 'col',
        'data-kind': kind,
        ...(wide === true && { class: 'gpumon-wide' }),
      });
      element.append(
        sort === undefined
          ? label
          : button({ class: 'gpumon-table-sort' }, () => onSort?.(sort), label),
      );
      if (title !== undefined) {
        element.title = title;
      }
      setStyle(element, '--_wide', width === undefined ? 'auto' : `${width}px`);
      setStyle(element, '--_narrow', narrow === undefined ? 'auto' : `${narrow}px`);
      return { element, column };
    });
    this.element = h(
      'table',
      {
        class: 'gpumon-table',
        'aria-label': name,
        'data-testid': options.id,
        ...(onSelect && { role: 'grid', tabindex: '0' }),
      },
      h(
        'thead',
        {},
        h('tr', { 'aria-rowindex': '1' }, ...this.heads.map(({ element }) => element)),
      ),
      this.body,
      this.foot,
    );
    this.body.append(this.above, this.below);
    if (onSelect !== undefined) {
      this.listen();
    }
    // Whatever around it scrolls.
    document.addEventListener('scroll', this.onScroll, { capture: true, passive: true });
    window.addEventListener('resize', this.onScroll);
  }

  update(content: TableContent<Row, Key>): void {
    this.content = content;
    setAttribute(
      this.element,
      'aria-rowcount',
      String(content.count + 1 + (content.sums?.length ?? 0)),
    );
    for (const { element, column } of this.heads) {
      const isSorted = column.sort !== undefined && column.sort === content.sort?.key;
      // Numbers begin with the highest.
      const isDescending = (column.kind === 'number') !== content.sort?.reversed;
      setAttribute(
        element,
        'aria-sort',
        column.sort === undefined
          ? null
          : isSorted
            ? isDescending
              ? 'descending'
              : 'ascending'
            : 'none',
      );
    }
    this.fill();
    this.fillSums(content);
  }

  /** Brings a row to where it is seen. */
  reveal(place: number): void {
    const top = this.body.getBoundingClientRect().top + place * ROW_PX;
    const scroller = scrollerOf(this.element);
    const { top: from, bottom: to } = scroller?.getBoundingClientRect() ?? {
      top: 0,
      bottom: window.innerHeight,
    };
    const head = (this.heads[0]?.element.getBoundingClientRect().bottom ?? 0) - from;
    const by = top < from + head ? top - from - head : top + ROW_PX > to ? top + ROW_PX - to : 0;
    if (by !== 0) {
      (scroller ?? window).scrollBy({ top: by, behavior: 'instant' });
    }
  }

  dispose(): void {
    document.removeEventListener('scroll', this.onScroll, { capture: true });
    window.removeEventListener('resize', this.onScroll);
  }

  /** Writes the rows on the screen. */
  private fill(): void {
    const { content, above, below } = this;
    if (content === null) {
      return;
    }
    const [first, end] = this.visible(content.count);
    while (this.rows.length < end - first) {
      this.rows.push(this.newRow());
    }
    setStyle(above, 'height', `${first * ROW_PX}px`);
    setStyle(below, 'height', `${(content.count - end) * ROW_PX}px`);
    setShown(above, first > 0);
    setShown(below, end < content.count);
    this.rows.forEach((line, i) => {
      const place = first + i;
      const isThere = place < end;
      setShown(line.element, isThere);
      line.place = isThere ? place : -1;
      if (isThere) {
        this.write(line, content, place);
      }
    });
    const selected = this.rows.find(({ place }) => place >= 0 && place === content.selected);
    setAttribute(this.element, 'aria-activedescendant', selected?.element.id ?? null);
  }

  private fillSums({ count, sums = [] }: TableContent<Row, Key>): void {
    while (this.sums.length < sums.length) {
      const cells = this.newCells();
      const element = h('tr', {}, ...cells);
      this.foot.append(element);
      this.sums.push({ element, cells });
    }
    setShown(this.foot, sums.length > 0);
    this.sums.forEach(({ element, cells }, place) => {
      const row = sums[place];
      setShown(element, row !== undefined);
      if (row !== undefined) {
        setAttribute(element, 'aria-rowindex', String(count + place + 2));
        this.writeCells(cells, row);
      }
    });
  }

  private write(
    { element, cells }: { element: HTMLElement; cells: HTMLElement[] },
    { rowAt, selected = -1 }: TableContent<Row, Key>,
    place: number,
  ): void {
    const row = rowAt(place);
    setAttribute(element, 'aria-rowindex', String(place + 2));
    setAttribute(element, 'data-odd', place % 2 === 1 ? '' : null);
    if (this.options.onSelect !== undefined) {
      setAttribute(element, 'aria-selected', String(place === selected));
    }
    if (row !== undefined) {
      this.writeCells(cells, row);
    }
  }

  private writeCells(cells: readonly HTMLElement[], row: Row): void {
    this.options.columns.forEach(({ write }, i) => {
      const cell = cells[i];
      if (cell !== undefined) {
        write(cell, row);
      }
    });
  }

  private visible(count: number): [first: number, end: number] {
    const { top, height } = this.element.getBoundingClientRect();
    if (height === 0) {
      return [0, Math.min(count, UNSEEN)];
    }
    const from = Math.floor(-top / ROW_PX) - OVERSCAN;
    const first = Math.min(Math.max(0, from), Math.max(0, count - 1));
    const end = Math.ceil((window.innerHeight - top) / ROW_PX) + OVERSCAN;
    return [first, Math.min(count, Math.max(first + 1, end))];
  }

  private newRow(): { element: HTMLTableRowElement; cells: HTMLElement[]; place: number } {
    const cells = this.newCells();
    const element = h('tr', { id: `${this.options.id}-${this.rows.length}` }, ...cells);
    this.body.insertBefore(element, this.below);
    return { element, cells, place: -1 };
  }

  private newCells(): HTMLElement[] {
    return this.options.columns.map(({ kind, wide, narrow = TIGHT_PX }) =>
      h('td', {
        'data-kind': kind,
        ...(wide === true && { class: 'gpumon-wide' }),
        ...(narrow < TIGHT_PX && { 'data-tight': '' }),
      }),
    );
  }

  private listen(): void {
    const placeOf = ({ target }: Event): number => {
      const line = this.rows.find(
        ({ element }) => target instanceof Node && element.contains(target),
      );
      return line?.place ?? -1;
    };
    this.body.addEventListener('click', (event) => {
      this.select(placeOf(event));
    });
    this.body.addEventListener('dblclick', (event) => {
      this.open(placeOf(event));
    });
    this.element.addEventListener('keydown', (event) => {
      const { content } = this;
      if (
        content === null ||
        event.target !== this.element ||
        event.ctrlKey ||
        event.metaKey ||
        event.altKey
      ) {
        return;
      }
      const { selected = -1, count } = content;
      const places: Partial<Record<string, number>> = {
        ArrowDown: selected + 1,
        ArrowUp: selected < 0 ? 0 : selected - 1,
        PageDown: selected + 10,
        PageUp: selected - 10,
        Home: 0,
        End: count - 1,
      };
      const place = places[event.key];
      if (place !== undefined && count > 0) {
        const bounded = Math.min(count - 1, Math.max(0, place));
        this.select(bounded);
        this.reveal(bounded);
      } else if (event.key === 'Enter' && selected >= 0) {
        this.open(selected);
      } else if (event.key === 'Escape' && selected >= 0) {
        this.options.onSelect?.(null);
      } else {
        return;
      }
      event.preventDefault();
      event.stopPropagation();
    });
  }

  private select(place: number): void {
    const row = this.content?.rowAt(place);
    if (row !== undefined) {
      this.options.onSelect?.(row);
    }
  }

  private open(place: number): void {
    const row = this.content?.rowAt(place);
    if (row !== undefined) {
      this.options.onOpen?.(row);
    }
  }
}

/** A value with a bar of its share before it; NaN draws none. */
export function writeMeter(cell: HTMLElement, text: string, share: number, color: string): void {
  let meter = cell.querySelector('.gpumon-table-meter');
  let value = cell.firstElementChild?.lastElementChild ?? null;
  if (meter === null || value === null) {
    meter = h('span', { class: 'gpumon-table-meter', 'aria-hidden': 'true' }, h('span', {}));
    value = h('span', {});
    cell.replaceChildren(h('span', { class: 'gpumon-table-measured' }, meter, value));
  }
  setAttribute(meter, 'data-empty', Number.isNaN(share) ? '' : null);
  const fill = meter.firstElementChild;
  if (fill instanceof HTMLElement) {
    setStyle(fill, 'width', `${Number.isNaN(share) ? 0 : Math.round(share * 100)}%`);
    setStyle(fill, '--_color', color);
  }
  setText(value, text);
}

/** What scrolls around an element; `null` for the page. */
function scrollerOf(element: HTMLElement): HTMLElement | null {
  for (let at = element.parentElement; at !== null && at !== document.body; at = at.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(at).overflowY) && at.scrollHeight > at.clientHeight) {
      return at;
    }
  }
  return null;
}
