import type { IDisposable } from '@lumino/disposable';
import { beforeEach, expect, it, vi } from 'vitest';

import { NotebookFeature } from './notebook-features';
import type { NotebookPanel } from './notebook-panel';

class TestFeature implements IDisposable {
  isDisposed = false;
  dispose(): void {
    this.isDisposed = true;
  }
}

let made: TestFeature[];
let per: NotebookFeature;
let close: () => void;
let panel: NotebookPanel;

beforeEach(() => {
  made = [];
  per = new NotebookFeature(() => {
    const one = new TestFeature();
    made.push(one);
    return Promise.resolve(one);
  });
  panel = {
    sessionContext: { ready: Promise.resolve(), isReady: true },
    disposed: { connect: (slot: () => void) => (close = slot) },
  } as unknown as NotebookPanel;
});

const living = (): number => made.filter(({ isDisposed }) => !isDisposed).length;

it('each open notebook has one feature while enabled', async () => {
  per.add(panel);
  await vi.waitFor(() => Promise.resolve());
  expect(made).toEqual([]);
  per.setEnabled(true);
  per.setEnabled(true);
  await vi.waitFor(() => expect(living()).toBe(1));
  per.setEnabled(false);
  expect(living()).toBe(0);
  per.setEnabled(true);
  await vi.waitFor(() => expect(living()).toBe(1));
  close();
  expect(living()).toBe(0);
});

it('notebook closed while loading does not get feature', async () => {
  per.setEnabled(true);
  per.add(panel);
  close();
  await new Promise((resolve) => setTimeout(resolve));
  expect(living()).toBe(0);
});

it('feature waits only for its kernel or file', async () => {
  const never = { ready: new Promise<void>(() => undefined), isReady: false };
  const patient = {
    ...panel,
    sessionContext: never,
    context: { ready: Promise.resolve(), isReady: true },
  };
  const make = vi.fn(() => Promise.resolve(new TestFeature()));
  const [kernel, file] = [
    new NotebookFeature(make),
    new NotebookFeature(make, ({ context }) => context),
  ];
  for (const part of [kernel, file]) {
    part.setEnabled(true);
    part.add(patient as unknown as NotebookPanel);
  }
  await vi.waitFor(() => expect(make).toHaveBeenCalled());
  await new Promise((resolve) => setTimeout(resolve));
  expect(make).toHaveBeenCalledTimes(1);
});
