/**
 * The costs of runs that a notebook stores in the metadata of its cells. Like outputs, they cannot
 * be restored by Undo.
 */

import {
  EXECUTION_KEY,
  belongsToRun,
  METADATA_KEY,
  readStoredCost,
  runOf,
  type StoredCost,
} from '@gpumon/page/cells';

import type { CellModel, NotebookPanel } from './notebook-panel';

export function findStoredCost(cell: CellModel): StoredCost | null {
  return cell.type === 'code' ? readStoredCost(cell.getMetadata(METADATA_KEY)) : null;
}

/**
 * Returns whether a stored cost belongs to the cell's last run, and not to an earlier run or to
 * other code.
 */
export function isFromLastRun(stored: StoredCost, cell: CellModel): boolean {
  const { executionCount, sharedModel } = cell;
  return belongsToRun(
    stored,
    runOf(sharedModel.getSource(), executionCount, cell.getMetadata(EXECUTION_KEY)),
  );
}

/**
 * Stores the cost of a run, or removes the stored cost if `cost` is `null`. An unchanged cost does
 * not modify the notebook file.
 */
export function storeCost(cell: CellModel, cost: StoredCost | null): void {
  const before = cell.getMetadata(METADATA_KEY);
  if (cost !== null) {
    // JupyterLab ignores a value that is equal to the current one.
    cell.setMetadata(METADATA_KEY, cost);
  } else if (before !== undefined) {
    cell.deleteMetadata(METADATA_KEY);
  }
}

export function hasStoredCosts(panel: NotebookPanel): boolean {
  return panel.content.widgets.some(({ model }) => findStoredCost(model) !== null);
}

/** Removes the stored costs of all cells, including those that cannot be read. */
export function removeStoredCosts(panel: NotebookPanel): void {
  panel.content.widgets.forEach(({ model }) => storeCost(model, null));
}
