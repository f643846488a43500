/** The exports with which JupyterLab shows the GPU cost of notebooks and their cells. */

export {
  belongsToRun,
  toCellCost,
  EXECUTION_KEY,
  isWorthShowing,
  METADATA_KEY,
  readStoredCost,
  sendCellCost,
  requestCost,
  makeCellRun,
} from './model/cell-cost';
export type { CellCost } from './model/cell-cost';
export type { KernelCost, Sample, StoredCost } from './wire';
export { CellLine, Chip } from './view/notebook';
export { DASH, formatMemorySize } from './lib/format';
export { computeKernelShare, isConsolePath, notebookNames } from './model/notebooks';
