/** Commands about what notebooks store of their cells' costs. They are in the palette as soon as a notebook is open. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { showErrorMessage, type ICommandPalette } from '@jupyterlab/apputils';
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { nullTranslator, type ITranslator, type TranslationBundle } from '@jupyterlab/translation';

import type { NotebookPanel } from './notebook-panel';
import { removeStoredCosts } from './stored-costs';

const PLUGIN_ID = 'gpumon:plugin';
const SETTING = 'storeCosts';

const CommandIDs = {
  store: 'gpumon:store-costs',
  remove: 'gpumon:remove-stored-costs',
} as const;

const NO_ARGUMENTS = { args: { type: 'object', properties: {} } } as const;

export interface CostCommandsOptions {
  app: JupyterFrontEnd;
  palette: ICommandPalette | null;
  registry: ISettingRegistry | null;
  translator: ITranslator | null;
  trans: TranslationBundle;
  /** The notebook in front. */
  current: () => NotebookPanel | null;
}

export async function addCostCommands(options: CostCommandsOptions): Promise<void> {
  const { app, palette, registry, translator, trans, current } = options;
  // The group is JupyterLab's own, and so is its name.
  const lab = (translator ?? nullTranslator).load('jupyterlab');
  const category = lab.__('Notebook Operations');
  app.commands.addCommand(CommandIDs.remove, {
    label: trans.__('Remove Stored GPU Costs'),
    caption: trans.__('Remove the GPU costs that are stored in the cells of this notebook'),
    describedBy: NO_ARGUMENTS,
    isEnabled: () => current() !== null,
    execute: () => {
      const notebook = current();
      if (notebook !== null) {
        removeStoredCosts(notebook);
      }
    },
  });
  palette?.addItem({ command: CommandIDs.remove, category });

  // Without its settings, the defaults hold, and cannot be changed.
  const settings = await registry?.load(PLUGIN_ID).catch(() => null);
  if (!settings) {
    return;
  }
  const isOn = (): boolean => settings.composite[SETTING] === true;
  const label = trans.__('Store GPU Cost of Cells in the Notebook');
  app.commands.addCommand(CommandIDs.store, {
    label,
    caption: trans.__(
      'Store in each cell that uses a GPU what its run has cost, for all notebooks',
    ),
    describedBy: NO_ARGUMENTS,
    isToggleable: true,
    isToggled: isOn,
    execute: () =>
      settings
        .set(SETTING, !isOn())
        .catch((error: unknown) => showErrorMessage(label, error as Error)),
  });
  settings.changed.connect(() => app.commands.notifyCommandChanged(CommandIDs.store));
  palette?.addItem({ command: CommandIDs.store, category });
}
