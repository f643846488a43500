/**
 * Texts that come compressed: lines of one raw deflate stream (RFC 1951), in chunks that end at the
 * end of a line.
 */

/** What this browser can read. */
export const ENCODING = canInflate() ? 'deflate-raw' : 'text';

export class Inflater {
  private readonly writer: WritableStreamDefaultWriter<BufferSource>;

  /** Calls `onText` for each line, and `onError` where the stream is damaged. */
  constructor(
    private readonly onText: (text: string) => void,
    private readonly onError: () => void,
  ) {
    const { readable, writable } = new DecompressionStream('deflate-raw');
    this.writer = writable.getWriter();
    this.read(readable).catch(onError);
  }

  push(chunk: ArrayBuffer): void {
    this.writer.write(new Uint8Array(chunk)).catch(this.onError);
  }

  private async read(readable: ReadableStream<Uint8Array>): Promise<void> {
    const reader = readable.getReader();
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      text += decoder.decode(value, { stream: true });
      // What is one text may come in several pieces; JSON has no line feed within.
      if (text.endsWith('\n')) {
        const lines = text.trimEnd().split('\n');
        text = '';
        lines.forEach(this.onText);
      }
    }
  }
}

function canInflate(): boolean {
  try {
    new DecompressionStream('deflate-raw');
    return true;
  } catch {
    return false;
  }
}
