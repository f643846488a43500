/** Adds the GPU panel to JupyterLab and Notebook 7, and to notebooks what their cells took. */

import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, IThemeManager } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { Connection } from './connection';
import { gpuIcon } from './icon';
import { InNotebooks } from './in-notebooks';
import { GpuPanel } from './panel';
import { followSettings } from './settings';

const PLUGIN_ID = 'gpumon:plugin';

/** The commands of this extension. */
const CommandIDs = {
  open: 'gpumon:open',
} as const;

/** After the running kernels, before the table of contents. */
const RANK = 250;

// Notebook 7 has no layout restorer; a stripped-down JupyterLab may lack any of the others.
const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN_ID,
  description: 'Shows what the GPUs do, in a panel of the left side bar, and below cells what they took.',
  autoStart: true,
  optional: [ILayoutRestorer, ICommandPalette, IThemeManager, ITranslator, ISettingRegistry, IStatusBar],
  activate: (
    app: JupyterFrontEnd,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    themes: IThemeManager | null,
    translator: ITranslator | null,
    registry: ISettingRegistry | null,
    statusBar: IStatusBar | null,
  ) => {
    const trans = (translator ?? nullTranslator).load('gpumon');
    const connection = new Connection(app.serviceManager.serverSettings);
    const panel = new GpuPanel({ app, connection, trans });
    app.shell.add(panel, 'left', { rank: RANK });
    restorer?.add(panel, panel.id);
    themes?.themeChanged.connect(() => {
      panel.themeChanged();
    });
    app.commands.addCommand(CommandIDs.open, {
      label: trans.__('Show GPUs'),
      caption: trans.__('Show what the GPUs do, in the left side bar'),
      icon: gpuIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => {
        app.shell.activateById(panel.id);
      },
    });
    palette?.addItem({ command: CommandIDs.open, category: trans.__('View') });

    const inNotebooks = new InNotebooks({
      app,
      connection,
      statusBar,
      showPanel: () => {
        void app.commands.execute(CommandIDs.open);
      },
    });
    void followSettings(registry, PLUGIN_ID, (settings) => {
      inNotebooks.apply(settings);
    });
  },
};

export default plugin;
