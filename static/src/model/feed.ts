/** One connection to a gpumon server, shared by everything that shows something of it. */

import { ReconnectingSocket, type SocketLike } from '../lib/socket';
import type { ClientFrame, ServerFrame } from '../wire';
import { Store, type Diagnosis } from './store';

export { setTranslator } from '../lib/translation';
export { chooseUnits } from '../lib/units';

export interface FeedOptions {
  /** Makes a connection to the server's stream. */
  openSocket: () => SocketLike;
  /** Asks the server something else over HTTP; `path` is as `api/v1/runs`. Without it, nothing can be run. */
  request?: (path: string, init?: RequestInit) => Promise<Response>;
  /** Finds out why there is no connection; asked after a failure, and when it takes long. */
  diagnose?: () => Promise<Diagnosis | null>;
  /** What to say about a server of this version; `null` where it goes together with the view. */
  judge?: (version: string) => Diagnosis | null;
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
  /** The longest time between two samples that this reader can do with; `null` for the server's own. */
  setInterval: (interval_ms: number | null) => void;
  /** What else than an overview's metrics this reader draws over time, by their names in history. */
  setMetrics: (ids: readonly string[]) => void;
  /** Whether this reader draws what the driver itself recorded between samples. */
  setTraces: (on: boolean) => void;
  /** Whether this reader shows what workloads do that run. */
  setRuns: (on: boolean) => void;
  /** Leaves; the last to leave ends the connection. */
  leave: () => void;
}

/** A server that says nothing for longer than this is worth a question. */
const DOUBT_MS = 5000;

/** What a reader wants. */
interface Wish {
  looking: boolean;
  interval_ms: number | null;
  metrics: readonly string[];
  traces: boolean;
  runs: boolean;
}

/** Connects when the first reader comes, and keeps what the server tells in `store`. */
export class Feed {
  readonly store = new Store();
  private readonly readers = new Map<FeedListener, Wish>();
  private socket: ReconnectingSocket | null = null;
  /** Whether the server has spoken since the connection was begun: a proxy opens one before it knows of any server. */
  private greeted = false;
  private doubt: ReturnType<typeof setTimeout> | undefined;
  /** Whether the server sends samples, as far as it was told. */
  private flowing = true;
  /** The time between samples that the server was asked for; `null` where it was asked for none. */
  private asked_ms: number | null = null;
  /** The metrics whose history the server was asked for, and whether it was asked for traces and for runs. */
  private askedMetrics = '';
  private askedTraces = false;
  private askedRuns = false;
  /** The time between samples before anything was asked for. */
  private usual_ms = 1000;

  constructor(readonly options: FeedOptions) {}

  /** Takes part. A new reader looks. */
  join(listener: FeedListener): FeedReader {
    const wish: Wish = { looking: true, interval_ms: null, metrics: [], traces: false, runs: false };
    this.readers.set(listener, wish);
    this.socket ??= this.connect();
    this.settle();
    return {
      setLooking: (looking) => {
        wish.looking = looking;
        this.settle();
      },
      setInterval: (interval_ms) => {
        wish.interval_ms = interval_ms;
        this.settle();
      },
      setMetrics: (ids) => {
        wish.metrics = ids;
        this.settle();
      },
      setTraces: (on) => {
        wish.traces = on;
        this.settle();
      },
      setRuns: (on) => {
        wish.runs = on;
        this.settle();
      },
      leave: () => {
        if (!this.readers.delete(listener)) {
          return;
        }
        this.settle();
        if (this.readers.size === 0) {
          clearTimeout(this.doubt);
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
        if (phase.phase === 'open') {
          return;
        }
        this.greeted = false;
        clearTimeout(this.doubt);
        if (phase.phase === 'waiting') {
          void this.explain();
        } else {
          this.doubt = setTimeout(() => void this.explain(), DOUBT_MS);
        }
      },
    });
    // Whoever is told of the first phase may ask for the socket.
    this.socket = socket;
    socket.start();
    return socket;
  }

  private take(frame: ServerFrame): void {
    if (frame.type === 'sample') {
      // Where fewer samples were asked for than the server takes, the time between them is no gap.
      frame.interval_ms = Math.max(frame.interval_ms, this.asked_ms ?? 0);
    }
    try {
      this.store.apply(frame);
    } catch (error) {
      // A server of another version may leave out what this one relies on.
      console.warn('gpumon: a message from the server was not understood', error);
    }
    if (frame.type === 'hello') {
      this.greeted = true;
      clearTimeout(this.doubt);
      this.store.diagnosis = this.options.judge?.(frame.version) ?? null;
      this.socket?.settled();
      // A new connection sends until it is told not to, and as often as the server samples.
      this.flowing = true;
      this.asked_ms = null;
      this.askedMetrics = '';
      this.askedTraces = false;
      this.askedRuns = false;
      this.usual_ms = frame.sample?.interval_ms ?? this.usual_ms;
      this.settle();
    }
    this.tell(frame);
  }

  private tell(frame: ServerFrame | null): void {
    for (const listener of [...this.readers.keys()]) {
      // Whoever was told before may have let this one go.
      if (this.readers.has(listener)) {
        listener.changed(frame);
      }
    }
  }

  /** Has the server send what the readers want, and nothing while nobody looks. */
  private settle(): void {
    const looking = [...this.readers.values()].filter((wish) => wish.looking);
    this.setFlowing(looking.length > 0);
    const soonest_ms = Math.min(...looking.map((wish) => wish.interval_ms ?? this.usual_ms));
    const wanted = looking.length === 0 || soonest_ms === this.usual_ms ? null : soonest_ms;
    if (wanted !== this.asked_ms && this.send({ type: 'interval', ms: wanted ?? this.usual_ms })) {
      this.asked_ms = wanted;
    }
    this.settleHistory(looking);
  }

  /** What was kept once is kept on, since whoever closes a chart may open it again. */
  private settleHistory(looking: readonly Wish[]): void {
    const metrics = this.store.keep(looking.flatMap((wish) => wish.metrics));
    const wanted = metrics.join();
    if (metrics.length > 0 && wanted !== this.askedMetrics && this.send({ type: 'history', metrics })) {
      this.askedMetrics = wanted;
    }
    const traces = looking.some((wish) => wish.traces);
    if (traces !== this.askedTraces && this.send({ type: 'traces', on: traces })) {
      this.askedTraces = traces;
    }
    const runs = looking.some((wish) => wish.runs);
    if (runs !== this.askedRuns && this.send({ type: 'runs', on: runs })) {
      this.askedRuns = runs;
    }
  }

  private setFlowing(wanted: boolean): void {
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

  private send(frame: ClientFrame): boolean {
    return this.socket?.send(JSON.stringify(frame)) ?? false;
  }

  private async explain(): Promise<void> {
    const diagnosis = (await this.options.diagnose?.().catch(() => null)) ?? null;
    if (!this.greeted) {
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
