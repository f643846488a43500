/** The exports with which JupyterLab shows the GPU cost of notebooks and their cells. */

export { costOfCell, isWorthShowing, recordCell, requestCost } from './model/cell-cost';
export {
  EXECUTION_KEY,
  belongsToRun,
  METADATA_KEY,
  readStoredCost,
  runOf,
} from './model/stored-cost';
export type { CellCost } from './model/cell-cost';
export type { KernelCost, Sample, StoredCost } from './wire';
export { CellLine, Chip } from './view/notebook';
export { DASH, formatMemorySize } from './lib/format';
export { computeKernelShare, isConsolePath, notebookNames } from './model/notebooks';
