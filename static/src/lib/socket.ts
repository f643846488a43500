/**
 * A WebSocket that reconnects and detects a dead connection, and the decompressor of its messages.
 */

export interface SocketLike {
  readonly readyState: number;
  binaryType?: BinaryType;
  onopen: ((event: Event) => void) | null;
  onmessage: ((event: MessageEvent<unknown>) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
  send: (text: string) => void;
  close: () => void;
}

export type SocketPhase =
  /**
   * The connection is being established. `attempt` is the number of failures since the last good
   * connection.
   */
  | { phase: 'connecting'; attempt: number }
  | { phase: 'open' }
  /** The connection failed and will be retried at `retry_at_ms` of the local clock. */
  | { phase: 'waiting'; attempt: number; retry_at_ms: number };

export interface ReconnectingSocketOptions {
  open: () => SocketLike;
  /** Called with each message, or with each line of a compressed message. */
  onMessage: (text: string) => void;
  onPhase: (phase: SocketPhase) => void;
}

/**
 * If no message arrives for this long, the connection is considered dead. The server sends a
 * message at least every 5 s.
 */
export const SILENCE_MS = 15_000;
/** The maximum time to connect. A proxy may have to start the server first. */
const CONNECT_MS = 60_000;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 15_000;
const TICK_MS = 1000;
/** If a tick is late by more than this, the machine is assumed to have been suspended. */
const SUSPENDED_MS = 10_000;
const OPEN = 1;

/**
 * Returns the delay before attempt `attempt`, counted from 0. The delay doubles up to 15 s, and is
 * random, so that clients do not all reconnect at the same moment.
 */
export function computeBackoffMs(attempt: number, random = Math.random): number {
  const longest = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt, 10));
  return longest * (0.5 + 0.5 * random());
}

export class ReconnectingSocket {
  private socket: SocketLike | null = null;
  private attempt = 0;
  private received_ms = 0;
  private ticked_ms = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private ticker: ReturnType<typeof setInterval> | undefined;
  private readonly wake = (): void => this.retryNow();

  constructor(private readonly options: ReconnectingSocketOptions) {}

  start(): void {
    if (this.ticker !== undefined) {
      return;
    }
    this.ticked_ms = Date.now();
    this.ticker = setInterval(() => this.checkConnection(), TICK_MS);
    globalThis.addEventListener('online', this.wake);
    this.connect();
  }

  /** Sends a text. Returns `false` if there is no connection. */
  send(text: string): boolean {
    if (this.socket?.readyState !== OPEN) {
      return false;
    }
    this.socket.send(text);
    return true;
  }

  /** Resets the retry delay after the server has answered. */
  resetBackoff(): void {
    this.attempt = 0;
  }

  /** Connects immediately if a retry is pending. */
  retryNow(): void {
    if (this.socket === null && this.ticker !== undefined) {
      this.connect();
    }
  }

  dispose(): void {
    clearInterval(this.ticker);
    clearTimeout(this.retry);
    this.ticker = undefined;
    globalThis.removeEventListener('online', this.wake);
    this.dropSocket();
  }

  private connect(): void {
    clearTimeout(this.retry);
    this.received_ms = Date.now();
    this.options.onPhase({ phase: 'connecting', attempt: this.attempt });
    let socket: SocketLike;
    try {
      socket = this.options.open();
    } catch {
      // The browser rejects this URL, but the URL may be different in the next attempt.
      this.handleFailure();
      return;
    }
    this.socket = socket;
    socket.binaryType = 'arraybuffer';
    let inflater: Inflater | null = null;
    socket.onopen = () => {
      this.received_ms = Date.now();
      this.options.onPhase({ phase: 'open' });
    };
    socket.onmessage = (event: MessageEvent<unknown>) => {
      this.received_ms = Date.now();
      if (typeof event.data === 'string') {
        this.options.onMessage(event.data);
      } else if (event.data instanceof ArrayBuffer) {
        inflater ??= this.createInflater(socket);
        inflater.push(event.data);
      }
    };
    socket.onclose = () => this.handleFailure();
  }

  /** Returns an inflater that ignores text and errors once `socket` has been dropped. */
  private createInflater(socket: SocketLike): Inflater {
    const isCurrent = (): boolean => this.socket === socket;
    return new Inflater(
      (text) => isCurrent() && this.options.onMessage(text),
      () => isCurrent() && this.handleFailure(),
    );
  }

  private handleFailure(): void {
    this.dropSocket();
    const wait_ms = computeBackoffMs(this.attempt);
    this.attempt += 1;
    this.retry = setTimeout(() => this.connect(), wait_ms);
    this.options.onPhase({
      phase: 'waiting',
      attempt: this.attempt,
      retry_at_ms: Date.now() + wait_ms,
    });
  }

  /**
   * Drops the socket without waiting for its close event, which takes minutes on a dead connection.
   */
  private dropSocket(): void {
    const socket = this.socket;
    this.socket = null;
    if (socket !== null) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
  }

  private checkConnection(): void {
    const now_ms = Date.now();
    const wasSuspended = now_ms - this.ticked_ms > SUSPENDED_MS;
    this.ticked_ms = now_ms;
    if (this.socket === null) {
      if (wasSuspended) {
        this.retryNow();
      }
      return;
    }
    const timeout_ms = this.socket.readyState === OPEN ? SILENCE_MS : CONNECT_MS;
    if (now_ms - this.received_ms > timeout_ms) {
      this.handleFailure();
    }
  }
}

/** The stream encoding that this browser supports. */
export const ENCODING = canInflate() ? 'deflate-raw' : 'text';

/**
 * A decompressor of text lines in one raw deflate stream (RFC 1951). Each chunk ends at the end of
 * a line.
 */
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
