/**
 * The costs of cell runs, which a notebook stores in its cells' metadata, and the commands for
 * these stored costs. Like outputs, stored costs cannot be restored by Undo.
 */

import {
  belongsToRun,
  EXECUTION_KEY,
  METADATA_KEY,
  readStoredCost,
  makeCellRun,
  type StoredCost,
} from '@gpumon/page/cells';
import { showErrorMessage } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';

import type { NotebookFeaturesOptions } from './notebook-features';
import type { CellModel, NotebookPanel } from './notebook-panel';

/** The setting that enables storing. */
const SETTING = 'storeCosts';

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
    makeCellRun(sharedModel.getSource(), executionCount, cell.getMetadata(EXECUTION_KEY)),
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

export interface CostCommandsOptions extends Pick<
  NotebookFeaturesOptions,
  'app' | 'palette' | 'registry' | 'translator' | 'trans'
> {
  /** Returns the active notebook. */
  current: () => NotebookPanel | null;
}

/**
 * Adds the commands for the costs that notebooks store. The palette lists these commands while a
 * notebook is active.
 */
export async function addCostCommands(options: CostCommandsOptions): Promise<void> {
  const { palette, registry, translator, trans, current } = options;
  const { commands } = options.app;
  // JupyterLab already translates the name of this group.
  const lab = (translator ?? nullTranslator).load('jupyterlab');
  const category = lab.__('Notebook Operations');
  const describedBy = { args: { type: 'object', properties: {} } } as const;
  const remove = 'gpumon:remove-stored-costs';
  commands.addCommand(remove, {
    label: trans.__('Remove Stored GPU Costs'),
    caption: trans.__('Remove the GPU costs that are stored in the cells of this notebook'),
    describedBy,
    isEnabled: () => current() !== null,
    execute: () => {
      const notebook = current();
      if (notebook !== null) {
        removeStoredCosts(notebook);
      }
    },
  });
  palette?.addItem({ command: remove, category });

  // If the settings cannot be loaded, the defaults are used and cannot be changed.
  const settings = await registry?.load('gpumon:plugin').catch(() => null);
  if (!settings) {
    return;
  }
  const isToggled = (): boolean => settings.composite[SETTING] === true;
  const label = trans.__('Store GPU Cost of Cells in the Notebook');
  const store = 'gpumon:store-costs';
  commands.addCommand(store, {
    label,
    caption: trans.__(
      'In all notebooks, store the GPU cost of each run in the metadata of its cell',
    ),
    describedBy,
    isToggleable: true,
    isToggled,
    execute: () =>
      settings
        .set(SETTING, !isToggled())
        .catch((error: unknown) => showErrorMessage(label, error as Error)),
  });
  settings.changed.connect(() => commands.notifyCommandChanged(store));
  palette?.addItem({ command: store, category });
}
