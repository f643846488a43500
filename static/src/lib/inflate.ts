/**
 * A decompressor of text lines in one raw deflate stream (RFC 1951). Each chunk ends at the end of
 * a line.
 */

/** The stream encoding that this browser supports. */
export const ENCODING = canInflate() ? 'deflate-raw' : 'text';

export class Inflater {
  private readonly writer: WritableStreamDefaultWriter<BufferSource>;

  /** `onText` is called for each line, and `onError` if the stream is corrupt. */
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
      // A message may arrive in several pieces. JSON contains no line feeds, so a line feed ends
      // the message.
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
