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
  checkVersion?: (version: string) => Diagnosis | null;
}

/** What somebody who reads a feed is told. */
export interface FeedListener {
  /** The store holds something new; `frame` is what came, `null` where the connection changed. */
  changed: (frame: ServerFrame | null) => void;
}

/** A place among the readers of a feed. */
export interface Subscription {
  /** Whether this reader looks. Where none does, the server is asked to send nothing. */
  setActive: (active: boolean) => void;
  /** The longest time between two samples that this reader can do with; `null` for the server's own. */
  setInterval: (interval_ms: number | null) => void;
  /** What else than an overview's metrics this reader draws over time, by their names in history. */
  setMetrics: (ids: readonly string[]) => void;
  /** Whether this reader draws what the driver itself recorded between samples. */
  setTraces: (on: boolean) => void;
  /** Whether this reader shows what workloads do that run. */
  setRuns: (on: boolean) => void;
  /** Leaves; the last to leave ends the connection. */
  unsubscribe: () => void;
}

/** A server that says nothing for longer than this is worth a question. */
const DIAGNOSE_AFTER_MS = 5000;

/** What a reader wants. */
interface SubscriptionOptions {
  active: boolean;
  interval_ms: number | null;
  metrics: readonly string[];
  traces: boolean;
  runs: boolean;
}

/** Connects when the first reader comes, and keeps what the server tells in `store`. */
export class Feed {
  readonly store = new Store();
  private readonly subscriptions = new Map<FeedListener, SubscriptionOptions>();
  private socket: ReconnectingSocket | null = null;
  /** Whether the server has spoken since the connection was begun: a proxy opens one before it knows of any server. */
  private helloReceived = false;
  private diagnosisTimer: ReturnType<typeof setTimeout> | undefined;
  /** Whether the server sends samples, as far as it was told. */
  private streaming = true;
  /** The time between samples that the server was asked for; `null` where it was asked for none. */
  private requested_ms: number | null = null;
  /** The metrics whose history the server was asked for, and whether it was asked for traces and for runs. */
  private requestedMetrics = '';
  private requestedTraces = false;
  private requestedRuns = false;
  /** The time between samples before anything was asked for. */
  private default_ms = 1000;

  constructor(readonly options: FeedOptions) {}

  /** Takes part. A new reader looks. */
  subscribe(listener: FeedListener): Subscription {
    const options: SubscriptionOptions = { active: true, interval_ms: null, metrics: [], traces: false, runs: false };
    this.subscriptions.set(listener, options);
    this.socket ??= this.connect();
    this.reconcile();
    return {
      setActive: (active) => {
        options.active = active;
        this.reconcile();
      },
      setInterval: (interval_ms) => {
        options.interval_ms = interval_ms;
        this.reconcile();
      },
      setMetrics: (ids) => {
        options.metrics = ids;
        this.reconcile();
      },
      setTraces: (on) => {
        options.traces = on;
        this.reconcile();
      },
      setRuns: (on) => {
        options.runs = on;
        this.reconcile();
      },
      unsubscribe: () => {
        if (!this.subscriptions.delete(listener)) {
          return;
        }
        this.reconcile();
        if (this.subscriptions.size === 0) {
          clearTimeout(this.diagnosisTimer);
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
    this.streaming = true;
    const socket = new ReconnectingSocket({
      open: this.options.openSocket,
      onMessage: (text) => {
        const frame = parse(text);
        if (frame !== null) {
          this.ingest(frame);
        }
      },
      onPhase: (phase) => {
        this.store.phase = phase;
        this.notifyListeners(null);
        if (phase.phase === 'open') {
          return;
        }
        this.helloReceived = false;
        clearTimeout(this.diagnosisTimer);
        if (phase.phase === 'waiting') {
          void this.updateDiagnosis();
        } else {
          this.diagnosisTimer = setTimeout(() => void this.updateDiagnosis(), DIAGNOSE_AFTER_MS);
        }
      },
    });
    // Whoever is told of the first phase may ask for the socket.
    this.socket = socket;
    socket.start();
    return socket;
  }

  private ingest(frame: ServerFrame): void {
    if (frame.type === 'sample') {
      // Where fewer samples were asked for than the server takes, the time between them is no gap.
      frame.interval_ms = Math.max(frame.interval_ms, this.requested_ms ?? 0);
    }
    try {
      this.store.apply(frame);
    } catch (error) {
      // A server of another version may leave out what this one relies on.
      console.warn('gpumon: a message from the server was not understood', error);
    }
    if (frame.type === 'hello') {
      this.helloReceived = true;
      clearTimeout(this.diagnosisTimer);
      this.store.diagnosis = this.options.checkVersion?.(frame.version) ?? null;
      this.socket?.resetBackoff();
      // A new connection sends until it is told not to, and as often as the server samples.
      this.streaming = true;
      this.requested_ms = null;
      this.requestedMetrics = '';
      this.requestedTraces = false;
      this.requestedRuns = false;
      this.default_ms = frame.sample?.interval_ms ?? this.default_ms;
      this.reconcile();
    }
    this.notifyListeners(frame);
  }

  private notifyListeners(frame: ServerFrame | null): void {
    for (const listener of [...this.subscriptions.keys()]) {
      // Whoever was told before may have let this one go.
      if (this.subscriptions.has(listener)) {
        listener.changed(frame);
      }
    }
  }

  /** Has the server send what the readers want, and nothing while nobody looks. */
  private reconcile(): void {
    const active = [...this.subscriptions.values()].filter((options) => options.active);
    this.setStreaming(active.length > 0);
    const soonest_ms = Math.min(...active.map((options) => options.interval_ms ?? this.default_ms));
    const wanted = active.length === 0 || soonest_ms === this.default_ms ? null : soonest_ms;
    if (wanted !== this.requested_ms && this.send({ type: 'interval', ms: wanted ?? this.default_ms })) {
      this.requested_ms = wanted;
    }
    this.reconcileExtras(active);
  }

  /** What was kept once is kept on, since whoever closes a chart may open it again. */
  private reconcileExtras(active: readonly SubscriptionOptions[]): void {
    const metrics = this.store.trackMetrics(active.flatMap((options) => options.metrics));
    const wanted = metrics.join();
    if (metrics.length > 0 && wanted !== this.requestedMetrics && this.send({ type: 'history', metrics })) {
      this.requestedMetrics = wanted;
    }
    const traces = active.some((options) => options.traces);
    if (traces !== this.requestedTraces && this.send({ type: 'traces', on: traces })) {
      this.requestedTraces = traces;
    }
    const runs = active.some((options) => options.runs);
    if (runs !== this.requestedRuns && this.send({ type: 'runs', on: runs })) {
      this.requestedRuns = runs;
    }
  }

  private setStreaming(wanted: boolean): void {
    if (wanted === this.streaming) {
      return;
    }
    this.streaming = wanted;
    if (wanted) {
      this.store.resumed();
      this.socket?.retryNow();
    }
    this.send({ type: wanted ? 'resume' : 'pause' });
  }

  private send(frame: ClientFrame): boolean {
    return this.socket?.send(JSON.stringify(frame)) ?? false;
  }

  private async updateDiagnosis(): Promise<void> {
    const diagnosis = (await this.options.diagnose?.().catch(() => null)) ?? null;
    if (!this.helloReceived) {
      this.store.diagnosis = diagnosis;
      this.notifyListeners(null);
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
