/** One connection to a gpumon server, shared by everything that shows something of it. */

import { ReconnectingSocket, type SocketLike } from '../lib/socket';
import type { ClientFrame, ServerFrame } from '../wire';
import { setEnergyPrice } from './energy-price';
import { Store, type Diagnosis } from './store';

export { setLocale } from '../lib/format';
export { ENCODING } from '../lib/inflate';
export { plainText } from '../lib/text';
export { setTranslator } from '../lib/translation';
export { chooseUnits } from '../lib/units';
export { loadXids } from './xid';

export interface FeedOptions {
  /** Makes a connection to the server's stream. */
  openSocket: () => SocketLike;
  /**
   * Asks the server something else over HTTP; `path` is as `api/v1/runs`. Without it, nothing can
   * be run.
   */
  request?: (path: string, init?: RequestInit) => Promise<Response>;
  /** Whether the server only tells: nothing can be run there, nor marked. */
  readOnly?: boolean;
  /** Finds out why there is no connection; called after a failure, and when it takes long. */
  diagnose?: () => Promise<Diagnosis | null>;
  /** Explains a server version that does not match the view; `null` where it does. */
  checkVersion?: (version: string) => Diagnosis | null;
  /**
   * Explains a problem of the installation although the server answers; `null` if there is none.
   */
  checkInstallation?: () => Promise<Diagnosis | null>;
}

/** The store has changed, by `frame`, or by the connection where that is `null`. */
export type FeedListener = (frame: ServerFrame | null) => void;

export interface SubscriptionOptions {
  /** Where no subscription is active, the server sends nothing. */
  active: boolean;
  /**
   * Interval between samples; `null` for the server's default. The shortest of all subscriptions is
   * requested.
   */
  interval_ms: number | null;
  /** Metrics to keep besides those of an overview, by their names in history. */
  metrics: readonly string[];
  /** Whether to receive what the driver itself recorded between samples. */
  traces: boolean;
  /** Whether to receive the states of runs. */
  runs: boolean;
}

export interface Subscription {
  update: (changes: Partial<SubscriptionOptions>) => void;
  /** The last subscription to end closes the connection. */
  unsubscribe: () => void;
}

interface Requested extends Pick<SubscriptionOptions, 'interval_ms' | 'traces' | 'runs'> {
  metrics: string;
}

/** What a new connection sends unasked. */
const UNASKED: Readonly<Requested> = { interval_ms: null, metrics: '', traces: false, runs: false };

/** A connection without an answer is diagnosed after this time. */
const DIAGNOSE_AFTER_MS = 5000;

/** Connects with the first subscription, and keeps what the server sends in `store`. */
export class Feed {
  readonly store = new Store();
  private readonly subscriptions = new Map<FeedListener, SubscriptionOptions>();
  private socket: ReconnectingSocket | null = null;
  /**
   * Whether the server has answered on this connection: a proxy accepts one before it has reached a
   * server.
   */
  private helloReceived = false;
  private diagnosisTimer: ReturnType<typeof setTimeout> | undefined;
  /** Whether the server was last asked to send samples. */
  private streaming = true;
  private requested: Requested = { ...UNASKED };
  private default_ms = 1000;

  constructor(readonly options: FeedOptions) {}

  /** A new subscription is active. */
  subscribe(listener: FeedListener): Subscription {
    const options: SubscriptionOptions = {
      active: true,
      interval_ms: null,
      metrics: [],
      traces: false,
      runs: false,
    };
    this.subscriptions.set(listener, options);
    this.socket ??= this.connect();
    this.reconcile();
    return {
      update: (changes) => {
        Object.assign(options, changes);
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
      frame.interval_ms = Math.max(frame.interval_ms, this.requested.interval_ms ?? 0);
    }
    try {
      this.store.apply(frame);
    } catch (error) {
      // A server of another version may leave out what this one relies on.
      console.warn('gpumon: a message from the server was not understood', error);
    }
    if (frame.type === 'hello') {
      this.helloReceived = true;
      if (this.options.readOnly !== true) {
        // Nodes of a fleet may have other prices.
        setEnergyPrice(frame.energy_price ?? null);
      }
      clearTimeout(this.diagnosisTimer);
      this.store.diagnosis = this.options.checkVersion?.(frame.version) ?? null;
      void this.checkInstallation();
      this.socket?.resetBackoff();
      this.streaming = true;
      this.requested = { ...UNASKED };
      this.default_ms = frame.sample?.interval_ms ?? this.default_ms;
      this.reconcile();
    }
    this.notifyListeners(frame);
  }

  private notifyListeners(frame: ServerFrame | null): void {
    for (const listener of [...this.subscriptions.keys()]) {
      // An earlier listener may have ended this subscription.
      if (this.subscriptions.has(listener)) {
        listener(frame);
      }
    }
  }

  /** Requests from the server what the active subscriptions ask for. */
  private reconcile(): void {
    const active = [...this.subscriptions.values()].filter((options) => options.active);
    this.setStreaming(active.length > 0);
    const soonest_ms = Math.min(...active.map(({ interval_ms }) => interval_ms ?? this.default_ms));
    const interval_ms = active.length === 0 || soonest_ms === this.default_ms ? null : soonest_ms;
    this.request('interval_ms', interval_ms, {
      type: 'interval',
      ms: interval_ms ?? this.default_ms,
    });
    // Metrics stay tracked, since a closed chart may be opened again.
    const metrics = this.store.trackMetrics(active.flatMap((options) => options.metrics));
    this.request('metrics', metrics.join(), { type: 'history', metrics });
    const traces = active.some((options) => options.traces);
    this.request('traces', traces, { type: 'traces', on: traces });
    const runs = active.some((options) => options.runs);
    this.request('runs', runs, { type: 'runs', on: runs });
  }

  /** Sends a request, unless the last of its kind was the same. */
  private request<K extends keyof Requested>(
    kind: K,
    wanted: Requested[K],
    frame: ClientFrame,
  ): void {
    if (wanted !== this.requested[kind] && this.send(frame)) {
      this.requested[kind] = wanted;
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

  private async checkInstallation(): Promise<void> {
    const diagnosis = (await this.options.checkInstallation?.().catch(() => null)) ?? null;
    if (diagnosis !== null && this.helloReceived) {
      this.store.diagnosis ??= diagnosis;
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
