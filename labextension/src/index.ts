/** Adds the GPU panel to JupyterLab and Notebook 7, and to notebooks the GPU use of their cells. */

import {
  ILabShell,
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin,
} from '@jupyterlab/application';
import { ICommandPalette, IThemeManager } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { IRunningSessionManagers } from '@jupyterlab/running';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator, type TranslationBundle } from '@jupyterlab/translation';

import { Connection } from './server/connection';
import { Fleets } from './fleet/fleets';
import { Dashboards } from './views/dashboards';
import { addEntries } from './entries';
import { gpuIcon } from './icon';
import type { InNotebooksOptions } from './notebook/in-notebooks';
import type { NotebookPanel } from './notebook/notebook-panel';
import { once } from './once';
import { GpuPanel } from './views/panel';
import { followSettings, type Settings } from './settings';

const PLUGIN_ID = 'gpumon:plugin';

const CommandIDs = {
  open: 'gpumon:open',
  openDashboard: 'gpumon:open-dashboard',
  openFleet: 'gpumon:open-fleet',
  benchmarks: 'gpumon:benchmarks',
  tour: 'gpumon:tour',
} as const;

/** After the running kernels, before the table of contents. */
const RANK = 250;

// Notebook 7 has no layout restorer; a stripped-down JupyterLab may lack any of the others.
const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN_ID,
  description:
    'Monitors GPUs in a panel of the left sidebar, and shows below cells what they used.',
  autoStart: true,
  optional: [
    ILayoutRestorer,
    ICommandPalette,
    IThemeManager,
    ITranslator,
    ISettingRegistry,
    IStatusBar,
    ILauncher,
    IRunningSessionManagers,
    ILabShell,
  ],
  activate: (
    app: JupyterFrontEnd,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    themes: IThemeManager | null,
    translator: ITranslator | null,
    registry: ISettingRegistry | null,
    statusBar: IStatusBar | null,
    launcher: ILauncher | null,
    running: IRunningSessionManagers | null,
    labShell: ILabShell | null,
  ) => {
    const trans = (translator ?? nullTranslator).load('gpumon');
    const connection = new Connection(app.serviceManager.serverSettings, trans);
    const notebooks = once(() =>
      import('./notebook/notebooks').then(
        ({ LabNotebooks }) => new LabNotebooks(app, connection, trans),
      ),
    );
    const views = { connection, notebooks, trans };
    const inMain = { ...views, app, restorer, hasTabs: labShell !== null };
    const dashboards = new Dashboards(inMain);
    const fleets = new Fleets(inMain);
    const panel = new GpuPanel({
      ...views,
      onOpenGpu: (index) =>
        void app.commands.execute(CommandIDs.openDashboard, { address: `gpu=${index}` }),
    });
    app.shell.add(panel, 'left', { rank: RANK });
    restorer?.add(panel, panel.id);
    themes?.themeChanged.connect(() => {
      panel.themeChanged();
      dashboards.themeChanged();
      fleets.themeChanged();
    });
    addCommands(app, panel, dashboards, trans);
    addFleetCommand(app, fleets, connection, trans);
    dashboards.restore(CommandIDs.openDashboard);
    fleets.restore(CommandIDs.openFleet);
    const { tour, ...others } = CommandIDs;
    const commands = Object.values(others);
    // Notebook 7 offers to show each panel by itself, under the same name.
    const inPalette =
      labShell === null ? commands.filter((id) => id !== CommandIDs.open) : commands;
    const fleet = CommandIDs.openFleet;
    addEntries({
      app,
      connection,
      notebooks,
      commands,
      inPalette,
      fleet,
      tour,
      palette,
      launcher,
      running,
      translator,
    });
    const showPanel = (): void => void app.commands.execute(CommandIDs.open);
    const applyInNotebooks = followNotebooks({
      ...views,
      app,
      statusBar,
      palette,
      registry,
      translator,
      showPanel,
    });
    void followSettings(registry, PLUGIN_ID, (settings) => {
      applyInNotebooks(settings);
      void connection.apply(settings).then(() => {
        panel.apply(settings);
        dashboards.apply(settings);
        fleets.apply(settings);
      });
    });
  },
};

function addCommands(
  app: JupyterFrontEnd,
  panel: GpuPanel,
  dashboards: Dashboards,
  trans: TranslationBundle,
): void {
  app.commands.addCommand(CommandIDs.open, {
    label: trans.__('Show GPUs'),
    caption: trans.__('Show the GPU panel in the left sidebar'),
    icon: gpuIcon,
    describedBy: { args: { type: 'object', properties: {} } },
    execute: () => app.shell.activateById(panel.id),
  });
  app.commands.addCommand(CommandIDs.benchmarks, {
    label: trans.__('GPU Benchmarks…'),
    caption: trans.__('Measure memory, matrix products and PCIe, or test a GPU under full load'),
    icon: gpuIcon,
    describedBy: { args: { type: 'object', properties: {} } },
    execute: () => {
      app.shell.activateById(panel.id);
      panel.showBenchmarks();
    },
  });
  app.commands.addCommand(CommandIDs.tour, {
    label: trans.__('Tour of the GPU Panel'),
    caption: trans.__('Show what is where in the GPU panel'),
    describedBy: { args: { type: 'object', properties: {} } },
    execute: () => {
      app.shell.activateById(panel.id);
      panel.showTour();
    },
  });
  app.commands.addCommand(CommandIDs.openDashboard, {
    label: trans.__('GPU Charts'),
    caption: trans.__('Charts of all GPU and host metrics'),
    icon: gpuIcon,
    describedBy: {
      args: {
        type: 'object',
        properties: {
          address: {
            type: 'string',
            description: 'What to show, as `gpu=0,1&charts=power&span=5`',
          },
        },
      },
    },
    execute: ({ address, id }) =>
      dashboards.open(
        typeof address === 'string' ? address : '',
        typeof id === 'string' ? id : null,
      ),
  });
}

function addFleetCommand(
  app: JupyterFrontEnd,
  fleets: Fleets,
  connection: Connection,
  trans: TranslationBundle,
): void {
  const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);
  app.commands.addCommand(CommandIDs.openFleet, {
    label: trans.__('GPU Fleet'),
    caption: trans.__('GPUs of many machines: a heat map, who uses what, and where GPUs are free'),
    icon: gpuIcon,
    // Until the server has said whether it has a fleet, the fleet says what to do where there is none.
    isVisible: () => connection.hasFleet !== false,
    describedBy: {
      args: {
        type: 'object',
        properties: {
          address: { type: 'string', description: 'What to show, as `metric=memory&filter=ana`' },
          node: { type: 'string', description: 'The name of a node, to show its GPUs instead' },
        },
      },
    },
    execute: ({ address, node, isRestored }) =>
      fleets.open(text(address), text(node), isRestored === true),
  });
}

/** Adds to notebooks what they have, which is loaded with the first of them. Returns what applies the settings of it. */
function followNotebooks(options: InNotebooksOptions): (settings: Settings) => void {
  let chosen: Settings | null = null;
  const loaded = once(async () => {
    const { InNotebooks } = await import('./notebook/in-notebooks');
    const inNotebooks = new InNotebooks(options);
    if (chosen !== null) {
      inNotebooks.apply(chosen);
    }
    return inNotebooks;
  });
  let opened = false;
  options.app.docRegistry.addWidgetExtension('Notebook', {
    createNew: (widget) => {
      opened = true;
      void loaded().then((inNotebooks) => {
        if (!widget.isDisposed) {
          inNotebooks.add(widget as unknown as NotebookPanel);
        }
      });
    },
  });
  return (settings) => {
    chosen = settings;
    if (opened) {
      void loaded().then((inNotebooks) => inNotebooks.apply(settings));
    }
  };
}

export default plugin;
