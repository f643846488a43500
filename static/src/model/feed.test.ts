// @vitest-environment jsdom
import { beforeEach, describe, expect, it, vi } from 'vitest';

import type { SocketLike } from '../lib/socket';
import { gpu, hello, NOW, sample } from '../testing/frames';
import { Feed, type FeedReader } from './feed';

let socket: SocketLike & { sent: string[]; readyState: number };
let feed: Feed;

beforeEach(() => {
  feed = new Feed({
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

function connect(interval_ms = 1000): void {
  socket.readyState = 1;
  socket.onopen?.(new Event('open'));
  const frame = hello({ sample: sample(NOW, [gpu(0)], interval_ms) });
  socket.onmessage?.(new MessageEvent('message', { data: JSON.stringify(frame) }));
}

function joined(): FeedReader {
  return feed.join({ changed: () => undefined });
}

describe('how often samples come', () => {
  it('is as often as the one who looks and needs most, and as before when nobody needs more', () => {
    const [calm, eager] = [joined(), joined()];
    connect();
    expect(socket.sent).toEqual([]);
    eager.setInterval(100);
    calm.setInterval(250);
    expect(socket.sent).toEqual(['{"type":"interval","ms":100}']);
    eager.setLooking(false);
    expect(socket.sent.at(-1)).toBe('{"type":"interval","ms":250}');
    calm.leave();
    eager.setInterval(null);
    eager.setLooking(true);
    expect(socket.sent.at(-1)).toBe('{"type":"resume"}');
    expect(socket.sent).toContain('{"type":"interval","ms":1000}');
    eager.leave();
  });

  it('is asked for again on a new connection', () => {
    const reader = joined();
    reader.setInterval(100);
    connect();
    expect(socket.sent).toEqual(['{"type":"interval","ms":100}']);
    reader.leave();
  });

  it('is never made less often than the server samples', () => {
    const reader = joined();
    connect(100);
    reader.setInterval(500);
    expect(socket.sent).toEqual(['{"type":"interval","ms":100}']);
    reader.leave();
  });
});

it('tells nobody who has left', () => {
  const seen = vi.fn();
  let late: FeedReader | null = null;
  const first = feed.join({
    changed: () => {
      late?.leave();
    },
  });
  late = feed.join({ changed: seen });
  connect();
  expect(seen).not.toHaveBeenCalled();
  first.leave();
});
