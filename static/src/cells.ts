/** What others may use to tell a notebook what its cells took. */

export { CellMeter, isWorthTelling } from './model/cell-cost';
export type { CellCost } from './model/cell-cost';
export { CellLine } from './view/cell-line';
