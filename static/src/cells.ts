/** The exports with which JupyterLab shows the GPU cost of notebooks and their cells. */

export { cellCost, isWorthShowing } from './model/cell-cost';
export { costOf, record } from './model/cell-record';
export { EXECUTION_KEY, isOfRun, METADATA_KEY, readStoredCost, runOf } from './model/stored-cost';
export type { CellCost } from './model/cell-cost';
export type { KernelCost, Sample, StoredCost } from './wire';
export { CellLine } from './view/cell-line';
export { Chip } from './view/chip';
export { DASH, memorySize } from './lib/format';
export { shareOf } from './model/kernel-share';
export { isConsolePath, notebookNames } from './model/notebook-names';
