/** The columns of a GPU's row, which depend on its width. */

import { SORT_KEYS, type SortKey } from '../model/gpu-order';

/** The widths of the columns of a wide row. */
const WIDTHS = {
  index: '26px',
  name: 'minmax(64px, 110px)',
  use: '54px',
  line: 'minmax(50px, 1fr)',
  bar: 'minmax(40px, 2fr)',
  mem: '94px',
  temp: '46px',
  power: '50px',
  /** The width of this column is computed from the width of the row. */
  state: '',
  toggle: '12px',
};
/** The widths of the columns of a narrow row, which has two lines. */
const NARROW_WIDTHS = ['22px', '46px', 'minmax(0, 1fr)', '42px', '50px'];
const NARROW_HEADS: readonly SortKey[] = ['index', 'use', 'state', 'mem', 'temp', 'power'];
type ColumnName = keyof typeof WIDTHS;

/** The minimum width of a column of rows in a list with several columns. */
const COLUMN_PX = 440;
/**
 * The minimum widths at which rows show the temperature: in narrow rows, and in columns of rows.
 * `LINE_PX` is the minimum width for a line.
 */
const NARROW_TEMP_PX = 286;
const COLUMN_TEMP_PX = 500;
const LINE_PX = 700;
/** The maximum number of GPUs in a wide list with a single column of rows. */
const MAX_ONE_COLUMN_ROWS = 16;

export interface RowLayout {
  /** The maximum number of columns in which rows are arranged. */
  columns: number;
  isColumns: boolean;
  has: (place: ColumnName) => boolean;
  /** The columns of a row that have a header, in order. */
  heads: readonly SortKey[];
  /** The custom properties of the list, which define the grid of each row. */
  style: Record<`--_${string}`, string>;
}

/**
 * Returns the layout of `count` rows. If the GPUs have different names, each row shows its name.
 */
export function rowLayoutOf(
  count: number,
  { width_px, isWide, hasNames }: { width_px: number; isWide: boolean; hasNames: boolean },
): RowLayout {
  const isColumns = isWide && count > MAX_ONE_COLUMN_ROWS;
  const columns = isColumns ? Math.max(1, Math.floor(width_px / COLUMN_PX)) : 1;
  const row_px = width_px / columns;
  const hasTemp =
    row_px >=
    (!isWide ? NARROW_TEMP_PX : (isColumns ? COLUMN_TEMP_PX : 620) + (hasNames ? 110 : 0));
  const places = (Object.keys(WIDTHS) as ColumnName[]).filter(
    (place) =>
      (place !== 'name' || hasNames) &&
      (place !== 'temp' || hasTemp) &&
      (place !== 'line' || (isWide && !isColumns && row_px >= LINE_PX)),
  );
  const narrow: ColumnName[][] = [
    ['index', 'use', 'state', hasTemp ? 'temp' : 'state', 'power'],
    ['index', 'bar', 'bar', 'mem', 'mem'],
  ];
  const named: ColumnName[][] = hasNames ? [['index', 'name', 'name', 'name', 'name']] : [];
  // If rows are arranged in several columns, all states have the same width, so that the columns
  // are aligned.
  const stateWidth = isColumns ? '122px' : `minmax(40px, ${row_px < LINE_PX ? 132 : 210}px)`;
  const lines = isWide ? [places] : [...named, ...narrow];
  const widths = isWide
    ? places.map((place) => (place === 'state' ? stateWidth : WIDTHS[place]))
    : NARROW_WIDTHS;
  const heads = isWide ? SORT_KEYS : NARROW_HEADS;
  return {
    columns,
    isColumns,
    has: (place) => places.includes(place),
    heads: heads.filter((place) => places.includes(place)),
    style: {
      '--_areas': lines.map((line) => `'${line.join(' ')}'`).join(' '),
      '--_row': widths.join(' '),
      '--_columns': String(columns),
    },
  };
}
