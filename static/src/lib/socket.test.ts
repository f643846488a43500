// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import {
  computeBackoffMs,
  ReconnectingSocket,
  SILENCE_MS,
  type SocketLike,
  type SocketPhase,
} from './socket';

class FakeSocket implements SocketLike {
  readyState = 0;
  sent: string[] = [];
  closed = false;
  onopen: SocketLike['onopen'] = null;
  onmessage: SocketLike['onmessage'] = null;
  onclose: SocketLike['onclose'] = null;

  open(): void {
    this.readyState = 1;
    this.onopen?.(new Event('open'));
  }

  receive(data: string | ArrayBuffer): void {
    this.onmessage?.(new MessageEvent('message', { data }));
  }

  fail(): void {
    this.readyState = 3;
    this.onclose?.(new CloseEvent('close'));
  }

  send(text: string): void {
    this.sent.push(text);
  }

  close(): void {
    this.closed = true;
  }
}

let sockets: FakeSocket[];
let phases: SocketPhase[];
let messages: string[];
let socket: ReconnectingSocket;

/** Returns the newest socket. */
function newestSocket(): FakeSocket {
  const found = sockets.at(-1);
  if (found === undefined) {
    throw new Error('nothing has been opened');
  }
  return found;
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, 'random').mockReturnValue(1);
  sockets = [];
  phases = [];
  messages = [];
  socket = new ReconnectingSocket({
    open: () => {
      const made = new FakeSocket();
      sockets.push(made);
      return made;
    },
    onMessage: (text) => messages.push(text),
    onPhase: (phase) => phases.push(phase),
  });
  socket.start();
});

afterEach(() => {
  socket.dispose();
  vi.useRealTimers();
});

describe('retry delay', () => {
  it('reconnect delay doubles up to a limit', () => {
    const waits = [0, 1, 2, 3, 4, 5, 6, 1000].map((attempt) => computeBackoffMs(attempt, () => 1));
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
  });

  it('reconnect delay varies randomly by up to half', () => {
    expect(computeBackoffMs(2, () => 0)).toBe(1000);
    expect(computeBackoffMs(2, () => 0.5)).toBe(1500);
  });
});

describe('reconnecting socket', () => {
  it('each failure increases the reported retry delay', () => {
    newestSocket().fail();
    expect(phases.at(-1)).toEqual({ phase: 'waiting', attempt: 1, retry_at_ms: Date.now() + 500 });
    vi.advanceTimersByTime(500);
    expect(sockets).toHaveLength(2);
    newestSocket().fail();
    vi.advanceTimersByTime(999);
    expect(sockets).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(sockets).toHaveLength(3);
  });

  it('healthy server resets the retry delay', () => {
    newestSocket().fail();
    vi.advanceTimersByTime(500);
    newestSocket().open();
    socket.resetBackoff();
    newestSocket().fail();
    expect(phases.at(-1)).toMatchObject({ phase: 'waiting', retry_at_ms: Date.now() + 500 });
  });

  it('repeated disconnects keep increasing the retry delay', () => {
    for (const wait of [500, 1000, 2000]) {
      newestSocket().open();
      newestSocket().fail();
      expect(phases.at(-1)).toMatchObject({ retry_at_ms: Date.now() + wait });
      vi.advanceTimersByTime(wait);
    }
  });

  it('silent connection counts as dead', () => {
    newestSocket().open();
    vi.advanceTimersByTime(10_000);
    newestSocket().receive('{}');
    vi.advanceTimersByTime(SILENCE_MS - 1000);
    expect(phases.at(-1)).toEqual({ phase: 'open' });
    const dead = newestSocket();
    vi.advanceTimersByTime(3000);
    expect(dead.closed).toBe(true);
    expect(sockets.length).toBeGreaterThan(1);
  });

  it('messages of dropped connection are ignored', () => {
    newestSocket().open();
    const dead = newestSocket();
    vi.advanceTimersByTime(SILENCE_MS + 2000);
    const count = phases.length;
    dead.receive('late');
    dead.fail();
    expect(messages).toEqual([]);
    expect(phases).toHaveLength(count);
  });

  it('corrupt compressed data causes a reconnect', async () => {
    vi.useRealTimers();
    newestSocket().open();
    // These bytes are one uncompressed deflate block.
    newestSocket().receive(new Uint8Array([0, 3, 0, 0xfc, 0xff, 0x7b, 0x7d, 0x0a]).buffer);
    await vi.waitFor(() => expect(messages).toEqual(['{}']));
    newestSocket().receive(new Uint8Array([0xff]).buffer);
    await vi.waitFor(() => expect(phases.at(-1)).toMatchObject({ phase: 'waiting' }));
  });

  it('starting server is given a minute to answer', () => {
    vi.advanceTimersByTime(40_000);
    expect(sockets).toHaveLength(1);
    vi.advanceTimersByTime(25_000);
    expect(sockets).toHaveLength(2);
  });

  it('restored network reconnects at once', () => {
    newestSocket().fail();
    globalThis.dispatchEvent(new Event('online'));
    expect(sockets).toHaveLength(2);
  });

  it('woken machine reconnects at once', () => {
    for (let i = 0; i < 6; i += 1) {
      newestSocket().fail();
      vi.advanceTimersByTime(15_000);
    }
    newestSocket().fail();
    const count = sockets.length;
    vi.setSystemTime(Date.now() + 3_600_000);
    vi.advanceTimersByTime(1000);
    expect(sockets).toHaveLength(count + 1);
  });

  it('messages are sent only while connected', () => {
    expect(socket.send('a')).toBe(false);
    newestSocket().open();
    expect(socket.send('b')).toBe(true);
    expect(newestSocket().sent).toEqual(['b']);
  });

  it('disposed socket stays closed', () => {
    newestSocket().open();
    socket.dispose();
    socket.dispose();
    vi.advanceTimersByTime(60_000);
    globalThis.dispatchEvent(new Event('online'));
    expect(sockets).toHaveLength(1);
    expect(newestSocket().closed).toBe(true);
  });

  it('rejected URL is retried later', () => {
    socket.dispose();
    const refusing = new ReconnectingSocket({
      open: () => {
        throw new SyntaxError('no such scheme');
      },
      onMessage: () => undefined,
      onPhase: (phase) => phases.push(phase),
    });
    refusing.start();
    expect(phases.at(-1)).toMatchObject({ phase: 'waiting', attempt: 1 });
    refusing.dispose();
  });
});
