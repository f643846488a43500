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
  /** Finds out why there is no connection; called after a failure, and when it takes long. */
  diagnose?: () => Promise<Diagnosis | null>;
  /** Explains a server version that does not match the view; `null` where it does. */
  checkVersion?: (version: string) => Diagnosis | null;
}

/** Receives the updates of a feed. */
export interface FeedListener {
  /** The store has changed, by `frame`, or by the connection where that is `null`. */
  changed: (frame: ServerFrame | null) => void;
}

/** A subscription to a feed. */
export interface Subscription {
  /** Where no subscription is active, the server sends nothing. */
  setActive: (active: boolean) => void;
  /** Interval between samples; `null` for the server's default. The shortest of all subscriptions is requested. */
  setInterval: (interval_ms: number | null) => void;
  /** Metrics to keep besides those of an overview, by their names in history. */
  setMetrics: (ids: readonly string[]) => void;
  /** Whether to receive what the driver itself recorded between samples. */
  setTraces: (on: boolean) => void;
  /** Whether to receive the states of runs. */
  setRuns: (on: boolean) => void;
  /** The last subscription to end closes the connection. */
  unsubscribe: () => void;
}

/** A connection without an answer is diagnosed after this time. */
const DIAGNOSE_AFTER_MS = 5000;

/** What a subscriber asks for. */
interface SubscriptionOptions {
  active: boolean;
  interval_ms: number | null;
  metrics: readonly string[];
  traces: boolean;
  runs: boolean;
}

/** Connects with the first subscription, and keeps what the server sends in `store`. */
export class Feed {
  readonly store = new Store();
  private readonly subscriptions = new Map<FeedListener, SubscriptionOptions>();
  private socket: ReconnectingSocket | null = null;
  /** Whether the server has answered on this connection: a proxy accepts one before it has reached a server. */
  private helloReceived = false;
  private diagnosisTimer: ReturnType<typeof setTimeout> | undefined;
  /** Whether the server was last asked to send samples. */
  private streaming = true;
  /** The requested interval between samples; `null` for the default. */
  private requested_ms: number | null = null;
  /** What was requested besides. */
  private requestedMetrics = '';
  private requestedTraces = false;
  private requestedRuns = false;
  /** The server's interval between samples. */
  private default_ms = 1000;

  constructor(readonly options: FeedOptions) {}

  /** A new subscription is active. */
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
    // A listener that is notified of the first phase may use the socket.
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
      // A new connection streams at the server's interval until asked otherwise.
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
      // An earlier listener may have ended this subscription.
      if (this.subscriptions.has(listener)) {
        listener.changed(frame);
      }
    }
  }

  /** Requests from the server what the active subscriptions ask for. */
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

  /** Metrics stay tracked, since a closed chart may be opened again. */
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
