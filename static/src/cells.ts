/** The exports with which JupyterLab shows the GPU cost of notebooks and their cells. */

export { costOfCell, isWorthShowing } from './model/cell-cost';
export { requestCost, recordCell } from './model/cell-record';
export {
  EXECUTION_KEY,
  belongsToRun,
  METADATA_KEY,
  readStoredCost,
  runOf,
} from './model/stored-cost';
export type { CellCost } from './model/cell-cost';
export type { KernelCost, Sample, StoredCost } from './wire';
export { CellLine } from './view/cell-line';
export { Chip } from './view/chip';
export { DASH, formatMemorySize } from './lib/format';
export { computeKernelShare } from './model/kernel-share';
export { isConsolePath, notebookNames } from './model/notebook-names';
