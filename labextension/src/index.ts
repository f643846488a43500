/** Adds the GPU panel to JupyterLab and Notebook 7, and shows the GPU use of cells in notebooks. */

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
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { addCommands, CommandIDs } from './commands';
import type { NotebookFeaturesOptions } from './notebook/notebook-features';
import type { NotebookPanel } from './notebook/notebook-panel';
import type { ExtensionParts } from './parts';
import { Connection } from './server/connection';
import { applySettingsOnChange, type Settings } from './settings';
import { GpuPanel } from './views/panel';
import { Tabs } from './views/tabs';

const PLUGIN_ID = 'gpumon:plugin';
/** The panel's position in the sidebar: after the running kernels, before the table of contents. */
const RANK = 250;

// The plugin also runs without the services in `optional`: Notebook 7 has no layout restorer, and a
// custom JupyterLab may lack any of the others.
const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN_ID,
  // JupyterLab's own descriptions of plugins are not translated either.
  // oxlint-disable-next-line texts/translated
  description: 'Monitors GPUs in a panel of the left sidebar, and shows the GPU use of cells.',
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
    const { commands, serviceManager, shell } = app;
    const trans = (translator ?? nullTranslator).load('gpumon');
    const connection = new Connection(
      serviceManager.serverSettings,
      trans,
      translator?.languageCode ?? 'en',
    );
    const notebooks = memoizePromise(async () => {
      const { LabNotebooks } = await import('./notebook/notebooks');
      return new LabNotebooks(app, connection, trans);
    });
    const parts = { app, connection, notebooks, trans };
    const tabs = new Tabs({ ...parts, restorer, hasTabs: labShell !== null });
    const run = (command: string, args: Record<string, string> = {}): void =>
      void commands.execute(command, args);
    const panel = new GpuPanel({
      ...parts,
      onOpenGpu: (index) => run(CommandIDs.openCharts, { address: `gpu=${index}` }),
      onOpenCharts: () => run(CommandIDs.openCharts),
      onSettings: () => run('settingeditor:open', { query: trans.__('GPU Monitor') }),
    });
    shell.add(panel, 'left', { rank: RANK });
    restorer?.add(panel, panel.id);
    themes?.themeChanged.connect(() => {
      panel.themeChanged();
      tabs.themeChanged();
    });
    const palettePanels = labShell === null;
    addCommands({ ...parts, panel, tabs, palette, launcher, translator, palettePanels });
    tabs.restoreTabs(CommandIDs.openCharts, CommandIDs.openFleet);
    if (running !== null) {
      addGpuMemorySection(parts, running);
    }
    const showPanel = (): void => run(CommandIDs.open);
    const applyInNotebooks = setUpNotebookFeatures({
      ...parts,
      statusBar,
      palette,
      registry,
      translator,
      showPanel,
    });
    void applySettingsOnChange(registry, PLUGIN_ID, (settings) => {
      applyInNotebooks(settings);
      void connection.apply(settings).then(() => {
        panel.apply(settings);
        tabs.apply(settings);
      });
    });
  },
};

/**
 * Once a kernel runs, adds a section to JupyterLab's list of running items. The section
 * lists the kernels that use GPU memory.
 */
function addGpuMemorySection(parts: ExtensionParts, running: IRunningSessionManagers): void {
  const { sessions } = parts.app.serviceManager;
  const list = (): void => {
    if (sessions.running().next().done !== true) {
      sessions.runningChanged.disconnect(list);
      void import('./notebook/notebook-chunk').then(({ GpuMemoryList }) =>
        running.add(new GpuMemoryList(parts)),
      );
    }
  };
  sessions.runningChanged.connect(list);
  list();
}

/**
 * Loads the notebook features when the first notebook opens. Returns a function that applies
 * settings to the features.
 */
function setUpNotebookFeatures(options: NotebookFeaturesOptions): (settings: Settings) => void {
  let chosen: Settings | null = null;
  let isOpened = false;
  const loaded = memoizePromise(async () => {
    const { NotebookFeatures } = await import('./notebook/notebook-features');
    const features = new NotebookFeatures(options);
    if (chosen !== null) {
      features.apply(chosen);
    }
    return features;
  });
  // oxlint-disable-next-line texts/translated
  options.app.docRegistry.addWidgetExtension('Notebook', {
    createNew: (widget) => {
      isOpened = true;
      void loaded().then((features) => {
        if (!widget.isDisposed) {
          features.add(widget as unknown as NotebookPanel);
        }
      });
    },
  });
  return (settings) => {
    chosen = settings;
    if (isOpened) {
      void loaded().then((features) => features.apply(settings));
    }
  };
}

/** Returns a function that calls `make` once and returns the same promise to all callers. */
function memoizePromise<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => (made ??= make());
}

export default plugin;
