// @vitest-environment jsdom
import { render } from 'preact';
import { describe, expect, it, vi } from 'vitest';

import { createNotebookNamer, type CellExecution } from '../../model/cell-log';
import { CellTable } from './cells';

function makeExecution(
  key: string,
  kernelId: string,
  gpu_ms: number,
  joules: number,
  path: string | null = null,
): CellExecution {
  const cost = {
    started_ms: 0,
    ended_ms: 5000,
    duration_s: 5,
    gpus: [0],
    gpu_s: gpu_ms / 1000,
    peak_memory_bytes: 1,
    memory_change_bytes: 0,
    energy_joules: joules,
    shared: false,
    limits: null,
  };
  return {
    key,
    kernelId,
    cellId: key,
    notebook: 'old.ipynb',
    path,
    count: 1,
    code: key,
    running: false,
    cost,
  };
}

describe('cell table', () => {
  let otherPath: string | undefined;
  const notebooks = {
    pathOf: (kernelId: string) => ({ here: 'a/new.ipynb', other: otherPath })[kernelId] ?? null,
    open: vi.fn(),
    openMenu: vi.fn(),
  };
  const host = document.createElement('div');
  const runs = [makeExecution('slow', 'here', 900, 1), makeExecution('hot', 'gone', 10, 5000)];
  const update = (executions: CellExecution[], gpu = 0): void =>
    render(
      <CellTable
        executions={executions}
        gpus={new Set([gpu])}
        notebookOf={createNotebookNamer(executions, notebooks.pathOf, [])}
        notebooks={notebooks}
      />,
      host,
    );
  const names = (): string[] =>
    [...host.querySelectorAll('tbody button')].map((one) => one.textContent);

  it('most expensive cell of the column is first', async () => {
    update(runs);
    expect(names()).toEqual(['[1] slow', '[1] hot']);
    const energy = [...host.querySelectorAll<HTMLButtonElement>('th button')].at(-1);
    energy?.click();
    await Promise.resolve();
    expect(names()).toEqual(['[1] hot', '[1] slow']);
    expect(energy?.closest('th')?.getAttribute('aria-sort')).toBe('descending');
  });

  it('notebook with running kernel can be opened', () => {
    update(runs);
    const [hot, slow] = host.querySelectorAll<HTMLButtonElement>('tbody button');
    expect([hot?.disabled, slow?.disabled]).toEqual([true, false]);
    expect(slow?.closest('tr')?.textContent).toContain('new.ipynb');
    expect(hot?.closest('tr')?.textContent).toContain('old.ipynb');
    slow?.click();
    expect(notebooks.open).toHaveBeenCalledWith('here');
  });

  it('notebooks of same name show their folders', () => {
    otherPath = 'b/new.ipynb';
    update([...runs, makeExecution('next', 'other', 5, 1)]);
    const shown = (): string[] =>
      [...host.querySelectorAll('tbody .gpumon-process-sub')].map((one) => one.textContent).sort();
    expect(shown()).toEqual(['a/new.ipynb', 'b/new.ipynb', 'old.ipynb']);
    // The names of the notebooks must stay distinct after the kernels have ended.
    update([
      makeExecution('one', 'gone', 5, 1, 'a/old.ipynb'),
      makeExecution('two', 'gone too', 5, 1, 'b/old.ipynb'),
    ]);
    expect(shown()).toEqual(['a/old.ipynb', 'b/old.ipynb']);
  });

  it('empty table is hidden', () => {
    update(runs, 1);
    expect(host.childElementCount).toBe(0);
  });

  it('few rows are shown until table is expanded', async () => {
    update([...runs, makeExecution('a', 'here', 5, 1), makeExecution('b', 'here', 4, 1)]);
    expect(names()).toHaveLength(3);
    const more = host.querySelector<HTMLButtonElement>('.gpumon-section-head button');
    expect(more?.textContent).toBe('Show all 4');
    more?.click();
    await Promise.resolve();
    expect(names()).toHaveLength(4);
  });
});
