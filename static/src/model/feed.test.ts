// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { SocketLike } from '../lib/socket';
import { makeGpu, makeHello, NOW, makeSample } from '../testing/frames';
import type { Hello, ServerFrame } from '../wire';
import { Feed, type Subscription } from './feed';
import { noticeOf, statusOf } from './status';

let socket: SocketLike & { sent: string[]; readyState: number };
let feed: Feed;
const diagnose = vi.fn();

beforeEach(() => {
  diagnose.mockReset().mockResolvedValue({ title: 'why', message: '' });
  feed = new Feed({
    diagnose,
    checkVersion: (version) =>
      version === '0.1.0' ? null : { title: 'another', message: version },
    openSocket: () => {
      socket = {
        sent: [],
        readyState: 0,
        onopen: null,
        onmessage: null,
        onclose: null,
        send(text) {
          this.sent.push(text);
        },
        close: () => undefined,
      };
      return socket;
    },
  });
});

function connect(interval_ms = 1000, changes: Partial<Hello> = {}): void {
  socket.readyState = 1;
  socket.onopen?.(new Event('open'));
  receive(makeHello({ sample: makeSample(NOW, [makeGpu(0)], interval_ms), ...changes }));
}

function receive(frame: ServerFrame): void {
  socket.onmessage?.(new MessageEvent('message', { data: JSON.stringify(frame) }));
}

function subscribeToFeed(): Subscription {
  return feed.subscribe(() => undefined);
}

describe('sample interval', () => {
  it('shortest interval of active subscriptions is requested', () => {
    const [calm, eager] = [subscribeToFeed(), subscribeToFeed()];
    connect();
    expect(socket.sent).toEqual([]);
    eager.update({ interval_ms: 100 });
    calm.update({ interval_ms: 250 });
    expect(socket.sent).toEqual(['{"type":"interval","ms":100}']);
    eager.update({ active: false });
    expect(socket.sent.at(-1)).toBe('{"type":"interval","ms":250}');
    calm.unsubscribe();
    eager.update({ interval_ms: null });
    eager.update({ active: true });
    expect(socket.sent.at(-1)).toBe('{"type":"resume"}');
    expect(socket.sent).toContain('{"type":"interval","ms":1000}');
    eager.unsubscribe();
  });

  it('interval is requested again after reconnect', () => {
    const reader = subscribeToFeed();
    reader.update({ interval_ms: 100 });
    connect();
    expect(socket.sent).toEqual(['{"type":"interval","ms":100}']);
    reader.unsubscribe();
  });

  it('longer requested interval leaves no gap', () => {
    const reader = subscribeToFeed();
    connect();
    reader.update({ interval_ms: 5000 });
    expect(socket.sent).toEqual(['{"type":"interval","ms":5000}']);
    receive({ type: 'sample', ...makeSample(NOW + 5000, [makeGpu(0)]) });
    expect(feed.store.sample?.interval_ms).toBe(5000);
    expect(feed.store.gap_ms).toBeGreaterThan(5000);
    // This subscription uses the server's default interval. It is shorter than the interval of the
    // other subscription, so the feed must request it.
    const other = subscribeToFeed();
    expect(socket.sent.at(-1)).toBe('{"type":"interval","ms":1000}');
    receive({ type: 'sample', ...makeSample(NOW + 6000, [makeGpu(0)]) });
    expect(feed.store.sample?.interval_ms).toBe(1000);
    reader.unsubscribe();
    other.unsubscribe();
  });
});

describe('slow connection', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it('slow connection is diagnosed until it opens', async () => {
    const reader = subscribeToFeed();
    // A proxy opens the connection before it has reached the server.
    socket.readyState = 1;
    socket.onopen?.(new Event('open'));
    expect(diagnose).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(6000);
    expect(noticeOf(feed.store, statusOf(feed.store, NOW), '')?.title).toBe('why');
    connect();
    expect(feed.store.diagnosis).toBeNull();
    await vi.advanceTimersByTimeAsync(6000);
    expect(diagnose).toHaveBeenCalledTimes(1);
    reader.unsubscribe();
  });
});

describe('server of another version', () => {
  it('incomplete first frame does not end the connection', () => {
    vi.spyOn(console, 'warn').mockReturnValue();
    const reader = subscribeToFeed();
    connect();
    expect(feed.store.diagnosis).toBeNull();
    connect(1000, { version: '0.0.9', events: undefined as never });
    expect(feed.store.diagnosis?.message).toBe('0.0.9');
    expect(statusOf(feed.store, NOW).state).not.toBe('connecting');
    expect(noticeOf(feed.store, statusOf(feed.store, NOW), '')?.title).toBe('another');
    reader.unsubscribe();
  });
});

it('installation problem is shown while samples arrive', async () => {
  feed.options.checkInstallation = () => Promise.resolve({ title: 'installation', message: '' });
  const reader = subscribeToFeed();
  connect(1000, { version: '0.1.0' });
  expect(feed.store.diagnosis).toBeNull();
  await vi.waitFor(() => expect(feed.store.diagnosis?.title).toBe('installation'));
  expect(noticeOf(feed.store, statusOf(feed.store, NOW), '')?.title).toBe('installation');
  // A version mismatch takes precedence over the installation problem.
  connect(1000, { version: '0.0.9' });
  await Promise.resolve();
  expect(feed.store.diagnosis?.title).toBe('another');
  reader.unsubscribe();
});

it('unsubscribed listener is not called', () => {
  const seen = vi.fn();
  let late: Subscription | null = null;
  const first = feed.subscribe(() => late?.unsubscribe());
  late = feed.subscribe(seen);
  connect();
  expect(seen).not.toHaveBeenCalled();
  first.unsubscribe();
});
