import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { ILauncher } from '@jupyterlab/launcher';
import { nullTranslator, type ITranslator, type TranslationBundle } from '@jupyterlab/translation';

import type { Connection } from './server/connection';
import { gpuIcon, type GpuPanel } from './views/panel';
import type { Tabs } from './views/tabs';

export const CommandIDs = {
  open: 'gpumon:open',
  openCharts: 'gpumon:open-dashboard',
  openFleet: 'gpumon:open-fleet',
  benchmarks: 'gpumon:benchmarks',
  tour: 'gpumon:tour',
} as const;

export interface CommandsOptions {
  app: JupyterFrontEnd;
  connection: Connection;
  panel: GpuPanel;
  tabs: Tabs;
  palette: ICommandPalette | null;
  launcher: ILauncher | null;
  translator: ITranslator | null;
  trans: TranslationBundle;
  /**
   * Whether the palette already lists a command for each panel, which is the case in Notebook 7.
   */
  palettePanels: boolean;
}

/** Adds the commands to the palette, and entries for the panel and the fleet to the launcher. */
export function addCommands(options: CommandsOptions): void {
  const { app, connection, panel, tabs, palette, launcher, translator, trans } = options;
  const { commands, shell } = app;
  // JupyterLab already translates the names of these two palette groups.
  const lab = (translator ?? nullTranslator).load('jupyterlab');
  const [view, help] = [lab.__('View'), lab.__('Help')];
  const add = (
    command: string,
    category: string | null,
    label: string,
    caption: string,
    more: Partial<Parameters<typeof commands.addCommand>[1]> & {
      execute: Parameters<typeof commands.addCommand>[1]['execute'];
    },
    properties: Record<string, { type: 'string'; description: string }> = {},
  ): void => {
    commands.addCommand(command, {
      label,
      caption,
      describedBy: { args: { type: 'object', properties } },
      ...more,
    });
    if (category !== null) {
      palette?.addItem({ command, category });
    }
  };
  const show = (): void => shell.activateById(panel.id);
  const icon = gpuIcon;
  add(
    CommandIDs.open,
    options.palettePanels ? null : view,
    trans.__('Show GPUs'),
    trans.__('Show the GPU panel in the left sidebar'),
    { icon, execute: show },
  );
  add(
    CommandIDs.openCharts,
    view,
    trans.__('GPU Charts'),
    trans.__('Charts of all GPU and host metrics'),
    {
      icon,
      execute: ({ address, id }) => tabs.openCharts(stringOrNull(address) ?? '', stringOrNull(id)),
    },
    {
      address: {
        type: 'string',
        description: trans.__(
          'GPUs, charts and time range to show, for example `gpu=0,1&charts=power&span=5`',
        ),
      },
    },
  );
  let hasFleet = false;
  add(
    CommandIDs.openFleet,
    view,
    trans.__('GPU Fleet'),
    trans.__('GPUs of many machines, their users, and free GPUs'),
    {
      icon,
      isVisible: () => connection.hasFleet ?? hasFleet,
      execute: ({ address, node, isRestored }) =>
        tabs.openFleet(stringOrNull(address), stringOrNull(node), isRestored === true),
    },
    {
      address: {
        type: 'string',
        description: trans.__(
          'Metric and filter of the fleet view, for example `metric=memory&filter=ana`',
        ),
      },
      node: {
        type: 'string',
        description: trans.__('Name of the node whose GPUs are shown instead of the fleet'),
      },
    },
  );
  add(
    CommandIDs.benchmarks,
    view,
    trans.__('GPU Benchmarks…'),
    trans.__('Measure memory, matrix products and PCIe, or test a GPU under full load'),
    {
      icon,
      execute: () => {
        show();
        panel.showBenchmarks();
      },
    },
  );
  add(
    CommandIDs.tour,
    help,
    trans.__('Tour of the GPU Panel'),
    trans.__('Show the parts of the GPU panel'),
    {
      execute: () => {
        show();
        panel.showTour();
      },
    },
  );
  const addCard = (command: string): void =>
    void launcher?.add({ command, category: lab.__('Other') });
  addCard(CommandIDs.open);
  void connection.willHaveFleet().then((willHave) => {
    hasFleet = willHave;
    if (willHave) {
      addCard(CommandIDs.openFleet);
      commands.notifyCommandChanged(CommandIDs.openFleet);
    }
  });
}

function stringOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
