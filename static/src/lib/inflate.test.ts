import { constants, deflateRawSync } from 'node:zlib';

import { describe, expect, it, vi } from 'vitest';

import { ENCODING, Inflater } from './inflate';

/** As the server does: on its own, and open for the next. */
function message(text: string): ArrayBuffer {
  const { buffer, byteOffset, byteLength } = deflateRawSync(`${text}\n`, {
    finishFlush: constants.Z_SYNC_FLUSH,
  });
  return buffer.slice(byteOffset, byteOffset + byteLength);
}

describe('compressed lines', () => {
  it('come whole and in order, be they short, longer than a piece, or of several bytes a letter', async () => {
    const texts = Array.from({ length: 300 }, (_, i) =>
      JSON.stringify({ i, text: `°µ${'x'.repeat((i % 7) * 30_000)}` }),
    );
    const received: string[] = [];
    const onError = vi.fn();
    const inflater = new Inflater((text) => received.push(text), onError);
    texts.forEach((text) => inflater.push(message(text)));
    await vi.waitFor(() => expect(received).toHaveLength(texts.length));
    expect(received).toEqual(texts);
    expect(onError).not.toHaveBeenCalled();
  });

  it('do not need those before, which a slow client has not got', async () => {
    const received: string[] = [];
    const inflater = new Inflater((text) => received.push(text), vi.fn());
    inflater.push(message('"one, two, three, four"'));
    await vi.waitFor(() => expect(received).toEqual(['"one, two, three, four"']));
  });

  it('say that they are damaged', async () => {
    const onError = vi.fn();
    const inflater = new Inflater(vi.fn(), onError);
    inflater.push(new Uint8Array([0xff, 0xff, 0xff]).buffer);
    await vi.waitFor(() => expect(onError).toHaveBeenCalled());
  });

  it('are asked for where they can be read', () => {
    expect(ENCODING).toBe('deflate-raw');
  });
});
