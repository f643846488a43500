// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import type { SocketLike } from '../lib/socket';
import { Feed } from '../model/feed';
import { makeDetails } from '../testing/details';
import { makeHello, makeInventory } from '../testing/frames';
import type { Driver, Reading, Vendor } from '../wire';
import type { MountHandle } from './store-view';
import { mountMonitor } from './overview';

let socket: SocketLike & { sent: string[]; closed: boolean };
let opened: number;
let feed: Feed;
let monitor: MountHandle;
let host: HTMLElement;

beforeEach(() => {
  vi.useFakeTimers();
  opened = 0;
  host = document.createElement('div');
  document.body.append(host);
  feed = new Feed({
    openSocket: () => {
      opened += 1;
      socket = {
        sent: [],
        closed: false,
        readyState: 1,
        onopen: null,
        onmessage: null,
        onclose: null,
        send(text) {
          this.sent.push(text);
        },
        close() {
          this.closed = true;
        },
      };
      return socket;
    },
    diagnose: () => Promise.resolve({ title: 'The way is missing', message: 'Install it.' }),
  });
  monitor = mountMonitor(host, { feed, title: 'GPUs' });
});

afterEach(() => {
  monitor.dispose();
  host.remove();
  vi.useRealTimers();
});

function connect(): void {
  socket.onopen?.(new Event('open'));
  receive(JSON.stringify(makeHello()));
}

function receive(data: string): void {
  socket.onmessage?.(new MessageEvent('message', { data }));
}

it('overview shows data of the server', async () => {
  connect();
  await vi.advanceTimersByTimeAsync(50);
  expect(host.querySelectorAll('[data-gpu-index]')).toHaveLength(2);
});

it('each driver vendor is shown', async () => {
  const known = makeInventory(2);
  const shown = async (drivers: Driver[]): Promise<string | null | undefined> => {
    const platform = { ...known.platform, drivers };
    receive(JSON.stringify(makeHello({ inventory: { ...known, platform } })));
    await vi.advanceTimersByTimeAsync(50);
    return host.querySelector('.gpumon-platform')?.textContent;
  };
  const driver = (vendor: string, version: string, cuda_version: Reading<string>): Driver => ({
    vendor: vendor as Vendor,
    version,
    library_version: { absent: 'not_supported' },
    cuda_version,
  });
  const nvidia = driver('nvidia', '580.1', '13.0');
  socket.onopen?.(new Event('open'));
  expect(await shown([nvidia])).toBe('node-07 · driver 580.1 · CUDA 13.0');
  const other = driver('another', '6.16', { absent: 'not_supported' });
  expect(await shown([nvidia, other])).toBe('node-07 · NVIDIA 580.1 · CUDA 13.0 · another 6.16');
});

it('details are rendered with the next sample', async () => {
  connect();
  await vi.advanceTimersByTimeAsync(50);
  const frame = vi.spyOn(globalThis, 'requestAnimationFrame');
  receive(JSON.stringify({ type: 'details', ...makeDetails(0) }));
  expect(frame).not.toHaveBeenCalled();
  receive(JSON.stringify({ type: 'collector', state: 'running' }));
  expect(frame).toHaveBeenCalledTimes(1);
});

it('invalid message does not break the view', async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  connect();
  receive('{"type": "sam');
  await vi.advanceTimersByTimeAsync(50);
  expect(host.querySelectorAll('[data-gpu-index]')).toHaveLength(2);
});

it('hidden view requests nothing, even after reconnect', () => {
  connect();
  monitor.setVisible(false);
  monitor.setVisible(false);
  expect(socket.sent).toEqual(['{"type":"pause"}']);
  connect();
  expect(socket.sent).toEqual(['{"type":"pause"}', '{"type":"pause"}']);
  monitor.setVisible(true);
  expect(socket.sent.at(-1)).toBe('{"type":"resume"}');
});

it('requested interval is sent', () => {
  connect();
  monitor.setInterval(100);
  expect(socket.sent).toEqual(['{"type":"interval","ms":100}']);
  monitor.setInterval(5000);
  expect(socket.sent.at(-1)).toBe('{"type":"interval","ms":5000}');
  const other = mountMonitor(host, { feed, title: 'GPUs', interval_ms: 200 });
  expect(socket.sent.at(-1)).toBe('{"type":"interval","ms":200}');
  other.dispose();
});

it('missing connection is explained', async () => {
  socket.onclose?.(new CloseEvent('close'));
  await vi.advanceTimersByTimeAsync(50);
  expect(host.querySelector('[data-testid="gpumon-notice"]')?.textContent).toBe(
    'The way is missingInstall it.',
  );
});

it('disposal removes everything', () => {
  monitor.dispose();
  monitor.dispose();
  expect(host.children).toHaveLength(0);
  expect(socket.closed).toBe(true);
  vi.advanceTimersByTime(120_000);
  expect(opened).toBe(1);
});

it('shared connection stays open when one view closes', () => {
  const other = mountMonitor(host, { feed, title: 'GPUs' });
  connect();
  expect(opened).toBe(1);
  monitor.setVisible(false);
  expect(socket.sent).toEqual([]);
  other.setVisible(false);
  expect(socket.sent).toEqual(['{"type":"pause"}']);
  other.setVisible(true);
  monitor.dispose();
  expect(socket.closed).toBe(false);
  other.dispose();
  expect(socket.closed).toBe(true);
  mountMonitor(host, { feed, title: 'GPUs' }).dispose();
  expect(opened).toBe(2);
});
