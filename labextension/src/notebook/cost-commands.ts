import { showErrorMessage } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';

import type { NotebookFeaturesOptions } from './in-notebooks';
import type { NotebookPanel } from './notebook-panel';
import { removeStoredCosts } from './stored-costs';

const SETTING = 'storeCosts';

export interface CostCommandsOptions extends Pick<
  NotebookFeaturesOptions,
  'app' | 'palette' | 'registry' | 'translator' | 'trans'
> {
  /** Returns the active notebook. */
  current: () => NotebookPanel | null;
}

/**
 * Adds the commands for the costs that notebooks store. The palette shows them while a notebook is
 * active.
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
