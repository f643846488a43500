/** A connection to a gpumon server that all views share. */

import { setEnergyPrice } from '../lib/format';
import { ReconnectingSocket, type SocketLike } from '../lib/socket';
import type { ClientFrame, ServerFrame } from '../wire';
import type { Request } from './request';
import { Store, type Diagnosis } from './store';

export { chooseUnits, setLocale } from '../lib/format';
export { ENCODING } from '../lib/socket';
export { plainText } from '../lib/text';
export { setTranslator } from '../lib/translation';
export { loadXids } from './alerts';

export interface FeedOptions {
  /** Opens a connection to the server's stream. */
  openSocket: () => SocketLike;
  /** Sends HTTP requests to the server. If it is missing, no runs can be started. */
  request?: Request;
  /**
   * Whether the page only displays the server, so that runs cannot be started and marks cannot be
   * set.
   */
  readOnly?: boolean;
  /**
   * Finds out why there is no connection. It is called after a failure, and when connecting takes a
   * long time.
   */
  diagnose?: () => Promise<Diagnosis | null>;
  /** Explains a server version that does not match the view, or returns `null` if it matches. */
  checkVersion?: (version: string) => Diagnosis | null;
  /**
   * Explains a problem of the installation that does not prevent a connection, or returns `null` if
   * there is none.
   */
  checkInstallation?: () => Promise<Diagnosis | null>;
}

/**
 * A function that is called after the store has changed. `frame` is the frame that changed it, or
 * `null` if the state of the connection has changed.
 */
export type FeedListener = (frame: ServerFrame | null) => void;

export interface SubscriptionOptions {
  /**
   * Whether the subscription needs samples. The server sends nothing if no subscription is active.
   */
  active: boolean;
  /**
   * The interval between samples; `null` for the server's default. The shortest interval of all
   * subscriptions is requested.
   */
  interval_ms: number | null;
  /** The metrics to keep in addition to those of an overview. They are named as in the history. */
  metrics: readonly string[];
  /** Whether to receive the driver's traces between samples. */
  traces: boolean;
  /** Whether to receive the states of runs. */
  runs: boolean;
}

export interface Subscription {
  update: (changes: Partial<SubscriptionOptions>) => void;
  /** Ends the subscription. When the last subscription ends, the connection is closed. */
  unsubscribe: () => void;
}

interface RequestedOptions extends Pick<SubscriptionOptions, 'interval_ms' | 'traces' | 'runs'> {
  metrics: string;
}

/** The options of a new connection, before the client has requested any. */
const INITIAL_REQUESTS: Readonly<RequestedOptions> = {
  interval_ms: null,
  metrics: '',
  traces: false,
  runs: false,
};

/** The time after which a connection without an answer is diagnosed. */
const DIAGNOSE_AFTER_MS = 5000;

/** Connects with the first subscription, and keeps the received data in `store`. */
export class Feed {
  readonly store = new Store();
  private readonly subscriptions = new Map<FeedListener, SubscriptionOptions>();
  private socket: ReconnectingSocket | null = null;
  /**
   * Whether the server has answered on this connection. A proxy accepts a connection before it has
   * reached the server.
   */
  private helloReceived = false;
  private diagnosisTimer: ReturnType<typeof setTimeout> | undefined;
  /** Whether the last request to the server was to send samples. */
  private streaming = true;
  private requested: RequestedOptions = { ...INITIAL_REQUESTS };
  private default_ms = 1000;

  constructor(readonly options: FeedOptions) {}

  /** Adds a subscription, which is active at first. */
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
    this.requestActiveOptions();
    return {
      update: (changes) => {
        Object.assign(options, changes);
        this.requestActiveOptions();
      },
      unsubscribe: () => {
        if (!this.subscriptions.delete(listener)) {
          return;
        }
        this.requestActiveOptions();
        if (this.subscriptions.size === 0) {
          clearTimeout(this.diagnosisTimer);
          this.socket?.dispose();
          this.socket = null;
        }
      },
    };
  }

  /** Connects immediately if a retry is pending. */
  retryNow(): void {
    this.socket?.retryNow();
  }

  private connect(): ReconnectingSocket {
    this.streaming = true;
    const socket = new ReconnectingSocket({
      open: this.options.openSocket,
      onMessage: (text) => {
        const frame = parseFrame(text);
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
    // The socket is assigned before it starts, because listeners may use it as early as the first
    // notification.
    this.socket = socket;
    socket.start();
    return socket;
  }

  private ingest(frame: ServerFrame): void {
    if (frame.type === 'sample') {
      // The client may have requested samples less often than the server takes them. The longer
      // interval between received samples must not count as a gap.
      frame.interval_ms = Math.max(frame.interval_ms, this.requested.interval_ms ?? 0);
    }
    try {
      this.store.apply(frame);
    } catch (error) {
      // A server of another version may omit required data.
      console.warn('gpumon: a message from the server was not understood', error);
    }
    if (frame.type === 'hello') {
      this.helloReceived = true;
      if (this.options.readOnly !== true) {
        // The nodes of a fleet are read-only and may have other prices, so their prices are
        // ignored.
        setEnergyPrice(frame.energy_price ?? null);
      }
      clearTimeout(this.diagnosisTimer);
      this.store.diagnosis = this.options.checkVersion?.(frame.version) ?? null;
      void this.checkInstallation();
      this.socket?.resetBackoff();
      this.streaming = true;
      this.requested = { ...INITIAL_REQUESTS };
      this.default_ms = frame.sample?.interval_ms ?? this.default_ms;
      this.requestActiveOptions();
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

  /** Sends the combined options of all active subscriptions to the server. */
  private requestActiveOptions(): void {
    const active = [...this.subscriptions.values()].filter((options) => options.active);
    this.setStreaming(active.length > 0);
    const soonest_ms = Math.min(...active.map(({ interval_ms }) => interval_ms ?? this.default_ms));
    const interval_ms = active.length === 0 || soonest_ms === this.default_ms ? null : soonest_ms;
    this.request('interval_ms', interval_ms, {
      type: 'interval',
      ms: interval_ms ?? this.default_ms,
    });
    // Metrics remain tracked, because a closed chart may be opened again.
    const metrics = this.store.trackMetrics(active.flatMap((options) => options.metrics));
    this.request('metrics', metrics.join(), { type: 'history', metrics });
    const traces = active.some((options) => options.traces);
    this.request('traces', traces, { type: 'traces', on: traces });
    const runs = active.some((options) => options.runs);
    this.request('runs', runs, { type: 'runs', on: runs });
  }

  /** Sends a request unless it equals the last one of its kind. */
  private request<K extends keyof RequestedOptions>(
    kind: K,
    wanted: RequestedOptions[K],
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
      this.store.resetExpectedTime();
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

/**
 * Returns a frame, or `null` if the message is invalid, so that one bad message does not end the
 * connection.
 */
function parseFrame(text: string): ServerFrame | null {
  try {
    return JSON.parse(text) as ServerFrame;
  } catch {
    console.warn('gpumon: a message from the server is not JSON');
    return null;
  }
}
