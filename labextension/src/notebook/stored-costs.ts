/**
 * What a notebook keeps in its cells of what their runs took. Nothing here can be undone, as
 * outputs cannot.
 */

import {
  EXECUTION_KEY,
  isOfRun,
  METADATA_KEY,
  readStoredCost,
  runOf,
  type StoredCost,
} from '@gpumon/page/cells';

import type { CellModel, NotebookPanel } from './notebook-panel';

/** Returns the stored cost of this cell. */
export function storedCostOf(cell: CellModel): StoredCost | null {
  return cell.type === 'code' ? readStoredCost(cell.getMetadata(METADATA_KEY)) : null;
}

/**
 * Returns `true` if a stored cost belongs to the cell's last run, not to an earlier run or other
 * code.
 */
export function isOfLastRun(stored: StoredCost, cell: CellModel): boolean {
  const { executionCount, sharedModel } = cell;
  return isOfRun(
    stored,
    runOf(sharedModel.getSource(), executionCount, cell.getMetadata(EXECUTION_KEY)),
  );
}

/**
 * Stores what a run took, or that it took nothing. A cell that says so already, and with it the
 * file, stays as it is.
 */
export function storeCost(cell: CellModel, cost: StoredCost | null): void {
  const before = cell.getMetadata(METADATA_KEY);
  if (cost !== null) {
    // JupyterLab compares, and changes nothing where all is the same.
    cell.setMetadata(METADATA_KEY, cost);
  } else if (before !== undefined) {
    cell.deleteMetadata(METADATA_KEY);
  }
}

export function hasStoredCosts(panel: NotebookPanel): boolean {
  return panel.content.widgets.some(({ model }) => storedCostOf(model) !== null);
}

/** Removes what is stored in all cells, also what cannot be read. */
export function removeStoredCosts(panel: NotebookPanel): void {
  panel.content.widgets.forEach(({ model }) => storeCost(model, null));
}
