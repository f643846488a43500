import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import { expect, it, vi } from 'vitest';

import { addEntries } from './entries';

it('the palette has those commands that nobody else puts into it, and the launcher has all views', () => {
  const [palette, launcher] = [{ addItem: vi.fn() }, { add: vi.fn() }];
  addEntries({
    app: { serviceManager: { sessions: {} } } as unknown as JupyterFrontEnd,
    connection: null as never,
    notebooks: vi.fn(),
    commands: ['show', 'charts'],
    inPalette: ['charts'],
    tour: 'tour',
    palette: palette as unknown as ICommandPalette,
    launcher: launcher,
    running: null,
    translator: null,
  });
  expect(palette.addItem.mock.calls).toEqual([
    [{ command: 'charts', category: 'View' }],
    [{ command: 'tour', category: 'Help' }],
  ]);
  expect(launcher.add).toHaveBeenCalledTimes(2);
});
