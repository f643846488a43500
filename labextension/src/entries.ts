/** Where else the panel and what it knows can be found: in the palette, the launcher, and the list of what runs. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { ILauncher } from '@jupyterlab/launcher';
import type { IRunningSessionManagers } from '@jupyterlab/running';
import { nullTranslator, type ITranslator } from '@jupyterlab/translation';

import type { LabNotebooks } from './notebook/notebooks';
import type { Connection } from './server/connection';

export interface EntriesOptions {
  app: JupyterFrontEnd;
  connection: Connection;
  notebooks: () => Promise<LabNotebooks>;
  commands: readonly string[];
  /** Those of them that the palette offers. */
  inPalette: readonly string[];
  /** The command that shows the fleet. The launcher offers it only if the server shows one. */
  fleet: string;
  /** The command that belongs to no view. */
  tour: string;
  palette: ICommandPalette | null;
  launcher: ILauncher | null;
  running: IRunningSessionManagers | null;
  translator: ITranslator | null;
}

export function addEntries({
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
}: EntriesOptions): void {
  // These groups are JupyterLab's own, and so are their names.
  const lab = (translator ?? nullTranslator).load('jupyterlab');
  for (const command of inPalette) {
    palette?.addItem({ command, category: lab.__('View') });
  }
  const addToLauncher = (command: string): void =>
    void launcher?.add({ command, category: lab.__('Other') });
  commands.filter((command) => command !== fleet).forEach(addToLauncher);
  if (launcher !== null) {
    void connection.willHaveFleet().then((willHave) => willHave && addToLauncher(fleet));
  }
  palette?.addItem({ command: tour, category: lab.__('Help') });

  const { sessions } = app.serviceManager;
  // Where nothing runs, nothing holds memory, and nothing need be loaded.
  const list = (): void => {
    if (sessions.running().next().done !== true) {
      sessions.runningChanged.disconnect(list);
      void import('./notebook/notebook-chunk').then(({ GpuMemoryList }) =>
        running?.add(
          new GpuMemoryList({
            app,
            connection,
            notebooks,
            trans: (translator ?? nullTranslator).load('gpumon'),
          }),
        ),
      );
    }
  };
  if (running !== null) {
    sessions.runningChanged.connect(list);
    list();
  }
}
