// @vitest-environment jsdom
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { expect, it, vi } from 'vitest';

vi.mock('./views/panel', () => ({ gpuIcon: 'gpumon:gpu' }));

import { addCommands, CommandIDs } from './commands';
import type { Connection } from './server/connection';
import type { GpuPanel } from './views/panel';
import type { Tabs } from './views/tabs';

interface Command {
  label: string;
  icon?: string;
  isVisible?: () => boolean;
}

function addTestCommands(
  willHaveFleet: boolean,
  palettePanels = false,
): {
  commands: Map<string, Command>;
  palette: ReturnType<typeof vi.fn>;
  launcher: ReturnType<typeof vi.fn>;
} {
  const [palette, launcher, commands] = [vi.fn(), vi.fn(), new Map<string, Command>()];
  const registry = {
    addCommand: (id: string, command: Command) => commands.set(id, command),
    notifyCommandChanged: vi.fn(),
  };
  addCommands({
    app: { commands: registry, shell: {} } as unknown as JupyterFrontEnd,
    connection: {
      hasFleet: null,
      willHaveFleet: () => Promise.resolve(willHaveFleet),
    } as unknown as Connection,
    panel: { id: 'panel' } as unknown as GpuPanel,
    tabs: {} as unknown as Tabs,
    palette: { addItem: palette } as unknown as ICommandPalette,
    launcher: { add: launcher },
    translator: null,
    trans: nullTranslator.load('gpumon'),
    palettePanels,
  });
  return { commands, palette, launcher };
}

const commandsOf = (adding: ReturnType<typeof vi.fn>): unknown[] =>
  adding.mock.calls.map(([item]) => (item as { command: string }).command);

it('palette has all commands', () => {
  const { commands, palette } = addTestCommands(false);
  expect(commandsOf(palette)).toEqual(Object.values(CommandIDs));
  expect([...commands.keys()]).toEqual(Object.values(CommandIDs));
});

it('Notebook 7 palette omits the duplicate open command', () => {
  const { palette } = addTestCommands(false, true);
  expect(commandsOf(palette)).not.toContain(CommandIDs.open);
});

it('launcher has one card with the icon', async () => {
  const { launcher, commands } = addTestCommands(false);
  await new Promise((resolve) => setTimeout(resolve));
  expect(commandsOf(launcher)).toEqual([CommandIDs.open]);
  expect(commands.get(CommandIDs.open)?.icon).toBe('gpumon:gpu');
  expect(commands.get(CommandIDs.openFleet)?.isVisible?.()).toBe(false);
});

it('launcher, menu and palette offer an existing fleet', async () => {
  const { launcher, commands } = addTestCommands(true);
  const cards = [CommandIDs.open, CommandIDs.openFleet];
  await vi.waitFor(() => expect(commandsOf(launcher)).toEqual(cards));
  expect(commands.get(CommandIDs.openFleet)?.isVisible?.()).toBe(true);
});
