import { constants, deflateRawSync } from 'node:zlib';

import { describe, expect, it, vi } from 'vitest';

import { ENCODING, Inflater } from './socket';

/** Compresses a message like the server does: flushed, but with the stream still open. */
function compressMessage(text: string): ArrayBuffer {
  const { buffer, byteOffset, byteLength } = deflateRawSync(`${text}\n`, {
    finishFlush: constants.Z_SYNC_FLUSH,
  });
  return buffer.slice(byteOffset, byteOffset + byteLength);
}

describe('compressed lines', () => {
  it('compressed lines of any length arrive in order', async () => {
    const texts = Array.from({ length: 300 }, (_, i) =>
      JSON.stringify({ i, text: `°µ${'x'.repeat((i % 7) * 30_000)}` }),
    );
    const received: string[] = [];
    const onError = vi.fn();
    const inflater = new Inflater((text) => received.push(text), onError);
    texts.forEach((text) => inflater.push(compressMessage(text)));
    await vi.waitFor(() => expect(received).toHaveLength(texts.length));
    expect(received).toEqual(texts);
    expect(onError).not.toHaveBeenCalled();
  });

  it('each stream line is inflated independently', async () => {
    const received: string[] = [];
    const inflater = new Inflater((text) => received.push(text), vi.fn());
    inflater.push(compressMessage('"one, two, three, four"'));
    await vi.waitFor(() => expect(received).toEqual(['"one, two, three, four"']));
  });

  it('corrupt data is reported', async () => {
    const onError = vi.fn();
    const inflater = new Inflater(vi.fn(), onError);
    inflater.push(new Uint8Array([0xff, 0xff, 0xff]).buffer);
    await vi.waitFor(() => expect(onError).toHaveBeenCalled());
  });

  it('compression is requested if supported', () => {
    expect(ENCODING).toBe('deflate-raw');
  });
});
