/** One connection to a gpumon server, shared by everything that shows something of it. */

import { ReconnectingSocket, type SocketLike } from '../lib/socket';
import type { ClientFrame, ServerFrame } from '../wire';
import { Store, type Diagnosis } from './store';

export interface FeedOptions {
  /** Makes a connection to the server's stream. */
  openSocket: () => SocketLike;
  /** Finds out why there is no connection; asked after a failure. */
  diagnose?: () => Promise<Diagnosis | null>;
}

/** What somebody who reads a feed is told. */
export interface FeedListener {
  /** The store holds something new; `frame` is what came, `null` where the connection changed. */
  changed: (frame: ServerFrame | null) => void;
}

/** A place among the readers of a feed. */
export interface FeedReader {
  /** Whether this reader looks. Where none does, the server is asked to send nothing. */
  setLooking: (looking: boolean) => void;
  /** Leaves; the last to leave ends the connection. */
  leave: () => void;
}

/** Connects when the first reader comes, and keeps what the server tells in `store`. */
export class Feed {
  readonly store = new Store();
  private readonly readers = new Map<FeedListener, boolean>();
  private socket: ReconnectingSocket | null = null;
  /** Whether the server sends samples, as far as it was told. */
  private flowing = true;

  constructor(private readonly options: FeedOptions) {}

  /** Takes part. A new reader looks. */
  join(listener: FeedListener): FeedReader {
    this.readers.set(listener, true);
    this.socket ??= this.connect();
    this.settle();
    return {
      setLooking: (looking) => {
        if (this.readers.has(listener)) {
          this.readers.set(listener, looking);
          this.settle();
        }
      },
      leave: () => {
        if (!this.readers.delete(listener)) {
          return;
        }
        this.settle();
        if (this.readers.size === 0) {
          this.socket?.dispose();
          this.socket = null;
        }
      },
    };
  }

  /** Where a retry is due later, tries at once. */
  retryNow(): void {
    this.socket?.retryNow();
  }

  private connect(): ReconnectingSocket {
    this.flowing = true;
    const socket = new ReconnectingSocket({
      open: this.options.openSocket,
      onMessage: (text) => {
        const frame = parse(text);
        if (frame !== null) {
          this.take(frame);
        }
      },
      onPhase: (phase) => {
        this.store.phase = phase;
        this.tell(null);
        if (phase.phase === 'waiting') {
          void this.explain();
        }
      },
    });
    // Whoever is told of the first phase may ask for the socket.
    this.socket = socket;
    socket.start();
    return socket;
  }

  private take(frame: ServerFrame): void {
    this.store.apply(frame);
    if (frame.type === 'hello') {
      this.socket?.settled();
      // A new connection sends until it is told not to.
      this.flowing = true;
      this.settle();
    }
    this.tell(frame);
  }

  private tell(frame: ServerFrame | null): void {
    for (const listener of [...this.readers.keys()]) {
      listener.changed(frame);
    }
  }

  /** Has the server send samples while anybody looks, and none while nobody does. */
  private settle(): void {
    const wanted = [...this.readers.values()].includes(true);
    if (wanted === this.flowing) {
      return;
    }
    this.flowing = wanted;
    if (wanted) {
      this.store.resumed();
      this.socket?.retryNow();
    }
    this.send({ type: wanted ? 'resume' : 'pause' });
  }

  private send(frame: ClientFrame): void {
    this.socket?.send(JSON.stringify(frame));
  }

  private async explain(): Promise<void> {
    const diagnosis = (await this.options.diagnose?.().catch(() => null)) ?? null;
    if (this.store.phase.phase !== 'open') {
      this.store.diagnosis = diagnosis;
      this.tell(null);
    }
  }
}

/** A frame, or `null` for what is none: one bad message is no reason to lose the connection. */
function parse(text: string): ServerFrame | null {
  try {
    return JSON.parse(text) as ServerFrame;
  } catch {
    console.warn('gpumon: a message from the server is not JSON');
    return null;
  }
}
