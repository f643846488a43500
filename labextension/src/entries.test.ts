import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import { expect, it, vi } from 'vitest';

import { addEntries } from './entries';
import type { Connection } from './server/connection';

function entries(hasFleet: boolean): {
  palette: ReturnType<typeof vi.fn>;
  launcher: ReturnType<typeof vi.fn>;
} {
  const [palette, launcher] = [vi.fn(), vi.fn()];
  addEntries({
    app: { serviceManager: { sessions: {} } } as unknown as JupyterFrontEnd,
    connection: { willHaveFleet: () => Promise.resolve(hasFleet) } as unknown as Connection,
    notebooks: vi.fn(),
    commands: ['show', 'charts', 'fleet'],
    inPalette: ['charts'],
    fleet: 'fleet',
    tour: 'tour',
    palette: { addItem: palette } as unknown as ICommandPalette,
    launcher: { add: launcher },
    running: null,
    translator: null,
  });
  return { palette, launcher };
}

const commandsOf = (add: ReturnType<typeof vi.fn>): unknown[] =>
  add.mock.calls.map(([item]) => (item as { command: string }).command);

it('palette has own commands, launcher has all views', async () => {
  const { palette, launcher } = entries(true);
  expect(palette.mock.calls).toEqual([
    [{ command: 'charts', category: 'View' }],
    [{ command: 'tour', category: 'Help' }],
  ]);
  await vi.waitFor(() => expect(commandsOf(launcher)).toEqual(['show', 'charts', 'fleet']));
});

it('the launcher offers no fleet without one', async () => {
  const { launcher } = entries(false);
  await new Promise((resolve) => setTimeout(resolve));
  expect(commandsOf(launcher)).toEqual(['show', 'charts']);
});
