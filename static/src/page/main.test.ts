// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

const host = document.createElement('div');

class Socket extends EventTarget {
  close = vi.fn();
}

beforeEach(async () => {
  vi.stubGlobal('WebSocket', Socket);
  vi.stubGlobal('matchMedia', () => new EventTarget());
  host.id = 'gpumon';
  document.body.replaceChildren(host);
  location.hash = '#charts';
  await import('./main');
});
afterEach(() => vi.unstubAllGlobals());

it('the address follows the charts, until somebody goes elsewhere', async () => {
  const press = (key: string): unknown =>
    host.querySelector('[tabindex]')?.dispatchEvent(new KeyboardEvent('keydown', { key }));
  press('y');
  expect(location.hash).toBe('#charts?fit=1');
  // Browsers take few addresses in a second: the next one waits.
  press('y');
  expect(location.hash).toBe('#charts?fit=1');
  location.hash = '#';
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect(location.hash).toBe('');
  expect(host.querySelector('[data-testid]')?.getAttribute('data-testid')).toBe('gpumon');
});
