// @vitest-environment jsdom
import { afterAll, beforeAll, expect, it, vi } from 'vitest';

import { setTranslator, trans } from '../lib/translation';
import { makeHello } from '../testing/frames';
import { pseudoTranslator, textsOf, findUntranslated } from '../testing/pseudo-locale';

const host = document.createElement('div');

class FakeSocket {
  static newest: FakeSocket | null = null;
  onmessage: ((event: MessageEvent) => void) | null = null;
  close = vi.fn();
  send = vi.fn();
  constructor() {
    FakeSocket.newest = this;
  }
}

beforeAll(async () => {
  vi.stubGlobal('WebSocket', FakeSocket);
  vi.stubGlobal('matchMedia', () => new EventTarget());
  setTranslator(pseudoTranslator(trans));
  localStorage.setItem('gpumon-signed-in', 'yes');
  host.id = 'gpumon';
  document.body.replaceChildren(host);
  location.hash = '#charts';
  await import('./main');
});
afterAll(() => vi.unstubAllGlobals());

it('URL changes with charts until user leaves them', async () => {
  const press = (key: string): unknown =>
    host.querySelector('[tabindex]')?.dispatchEvent(new KeyboardEvent('keydown', { key }));
  press('y');
  expect(location.hash).toBe('#charts?fit=1');
  // Browsers limit the rate of URL changes, so the next one is delayed.
  press('y');
  expect(location.hash).toBe('#charts?fit=1');
  location.hash = '#';
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect(location.hash).toBe('');
  expect(host.querySelector('[data-testid]')?.getAttribute('data-testid')).toBe('gpumon');
});

it('page header is completely translated', async () => {
  const data = JSON.stringify(makeHello({ fleet: true }));
  FakeSocket.newest?.onmessage?.(new MessageEvent('message', { data }));
  const expectActions = async (address: string, first: string): Promise<void> => {
    location.hash = address;
    const find = (id: string): Element | null => host.querySelector(`[data-testid=${id}]`);
    const ids = [first, 'gpumon-fleet-link', 'gpumon-theme', 'gpumon-sign-out'];
    await vi.waitFor(() => expect(ids.filter((id) => find(id) === null)).toEqual([]));
    const head = host.querySelector('.gpumon-head-actions');
    expect(findUntranslated(head === null ? ['no head'] : textsOf(head), ['⋮'])).toEqual([]);
  };
  await expectActions('', 'gpumon-charts');
  await expectActions('#charts', 'gpumon-all-gpus');
});
