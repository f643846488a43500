/** Adds the GPU panel to JupyterLab and Notebook 7. */

import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, IThemeManager } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { gpuIcon } from './icon';
import { GpuPanel } from './panel';

/** The commands of this extension. */
const CommandIDs = {
  open: 'gpumon:open',
} as const;

/** After the running kernels, before the table of contents. */
const RANK = 250;

// Notebook 7 has no layout restorer; a stripped-down JupyterLab may lack any of the others.
const plugin: JupyterFrontEndPlugin<void> = {
  id: 'gpumon:plugin',
  description: 'Shows what the GPUs do, in a panel of the left side bar.',
  autoStart: true,
  optional: [ILayoutRestorer, ICommandPalette, IThemeManager, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    themes: IThemeManager | null,
    translator: ITranslator | null,
  ) => {
    const trans = (translator ?? nullTranslator).load('gpumon');
    const panel = new GpuPanel({ app, trans });
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
  },
};

export default plugin;
