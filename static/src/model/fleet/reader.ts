/** The polling of the server's fleet API. The last responses are kept. */

import { trans } from '../../lib/translation';
import type { Fleet, FleetEvents, FleetHistory, FleetUsage } from '../../wire';
import { readJsonResponse, type Request } from '../request';

/** The last response, and the reason for the failure if the last request failed. */
export interface Answer<T> {
  value: T | null;
  why: string | null;
  /** Whether the first request is pending. */
  isLoading: boolean;
}

export interface FleetAnswers {
  fleet: Answer<Fleet>;
  usage: Answer<FleetUsage>;
  events: Answer<FleetEvents>;
  history: Answer<FleetHistory>;
  /** The history of the selected node. */
  nodeHistory: Answer<FleetHistory>;
  /** The GPUs of the selected node, if the fleet only lists nodes. */
  node: Answer<Fleet>;
}

/** The data to request in addition to the fleet itself. */
export interface RequestedData {
  range_s: number;
  usage: boolean;
  events: boolean;
  node: string | null;
}

/** A failed request is repeated after this delay. */
const RETRY_S = 10;
const MIN_REFRESH_S = 5;
/** The interval for data of a time range, which changes slowly and is expensive to compute. */
const RANGE_REFRESH_MS = 60_000;
/**
 * A request about a node is delayed by this much. Otherwise many requests would be sent while the
 * pointer moves across the map.
 */
const NODE_DELAY_MS = 250;

const NO_ANSWER = { value: null, why: null, isLoading: false } as const;

type AnswerName = keyof FleetAnswers;

export class FleetReader {
  readonly answers: FleetAnswers = {
    fleet: { ...NO_ANSWER, isLoading: true },
    usage: NO_ANSWER,
    events: NO_ANSWER,
    history: NO_ANSWER,
    nodeHistory: NO_ANSWER,
    node: NO_ANSWER,
  };
  private active = false;
  private wishes: RequestedData = { range_s: 0, usage: false, events: false, node: null };
  /** The path and time of the last request for each kind of data. */
  private readonly asked = new Map<
    AnswerName,
    { path: string; at_ms: number; ending: AbortController }
  >();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private nodeTimer: ReturnType<typeof setTimeout> | undefined;

  /** `refused` is called if the user must sign in. */
  constructor(
    private readonly request: Request,
    private readonly changed: () => void,
    private readonly refused: () => void = () => undefined,
  ) {}

  /** Starts or stops the requests. They are only sent while the fleet is visible. */
  setActive(active: boolean): void {
    if (this.active !== active) {
      this.active = active;
      clearTimeout(this.timer);
      if (active) {
        this.poll();
      }
    }
  }

  /** Changes the requested data. */
  setRequestedData(wishes: RequestedData): void {
    const { node, range_s } = this.wishes;
    this.wishes = wishes;
    if (wishes.node !== node || wishes.range_s !== range_s) {
      clearTimeout(this.nodeTimer);
      this.nodeTimer = setTimeout(() => this.requestNode(), node === null ? 0 : NODE_DELAY_MS);
    }
    if (this.active) {
      this.requestRangeData();
    }
  }

  /** Repeats all requests immediately. */
  retry(): void {
    clearTimeout(this.timer);
    this.asked.clear();
    this.poll();
  }

  dispose(): void {
    this.setActive(false);
    clearTimeout(this.nodeTimer);
    this.asked.forEach(({ ending }) => ending.abort());
  }

  private poll(): void {
    const isFirst = this.answers.fleet.value === null;
    void this.requestData('fleet', isFirst ? 'api/v1/fleet?at_once=true' : 'api/v1/fleet').then(
      () => {
        if (!this.active) {
          return;
        }
        clearTimeout(this.timer);
        const { value, why } = this.answers.fleet;
        const refresh_s =
          isFirst && isUpdating(value) ? 0 : Math.max(MIN_REFRESH_S, value?.refresh_s ?? 0);
        this.timer = setTimeout(() => this.poll(), (why === null ? refresh_s : RETRY_S) * 1000);
        this.requestNode();
      },
    );
  }

  /**
   * Returns whether the fleet itself has been loaded. All other requests are sent only after that.
   */
  private isLoaded(): boolean {
    const { value } = this.answers.fleet;
    return value !== null && !isUpdating(value);
  }

  /** Requests the data of the time range, if they are outdated. */
  private requestRangeData(): void {
    if (!this.isLoaded()) {
      return;
    }
    const { range_s, usage, events } = this.wishes;
    this.requestIfOutdated('history', `api/v1/fleet/history?range_s=${range_s}`);
    if (usage) {
      this.requestIfOutdated('usage', `api/v1/fleet/usage?range_s=${range_s}`);
    }
    if (events) {
      this.requestIfOutdated('events', `api/v1/fleet/events?range_s=${range_s}`);
    }
  }

  private requestIfOutdated(name: AnswerName, path: string): void {
    const last = this.asked.get(name);
    if (last?.path !== path || Date.now() - last.at_ms > RANGE_REFRESH_MS) {
      void this.requestData(name, path);
    }
  }

  private requestNode(): void {
    const { node, range_s } = this.wishes;
    if (node === null || !this.isLoaded()) {
      if (this.answers.nodeHistory !== NO_ANSWER) {
        this.answers.nodeHistory = this.answers.node = NO_ANSWER;
        this.changed();
      }
      return;
    }
    const name = encodeURIComponent(node);
    this.requestIfOutdated('nodeHistory', `api/v1/fleet/history?range_s=${range_s}&node=${name}`);
    if (this.answers.fleet.value?.resolution === 'node') {
      this.requestIfOutdated('node', `api/v1/fleet/node?node=${name}`);
    }
  }

  private async requestData(name: AnswerName, path: string): Promise<void> {
    const last = this.asked.get(name);
    last?.ending.abort();
    const asked = { path, at_ms: Date.now(), ending: new AbortController() };
    this.asked.set(name, asked);
    const isOther = last?.path !== path;
    const set = (answered: Answer<unknown>): void => {
      (this.answers as Record<AnswerName, Answer<unknown>>)[name] = answered;
      this.changed();
    };
    const before = this.answers[name];
    if (isOther && !(before.value === null && before.isLoading)) {
      // The previous response remains visible until the new one arrives, unless the response was
      // for another node.
      set({ value: name.startsWith('node') ? null : before.value, why: null, isLoading: true });
    }
    const { json, why } = await readJsonResponse(this.sendRequest(path, asked.ending.signal));
    if (asked.ending.signal.aborted) {
      return;
    }
    const value = json ?? this.answers[name].value;
    set({ value, why, isLoading: false });
  }

  private async sendRequest(path: string, signal: AbortSignal): Promise<Response> {
    const response = await this.request(path, { signal });
    if (response.status === 401) {
      this.refused();
    }
    return response;
  }
}

/** Returns whether the server sent an old version of the fleet and is refreshing it. */
export function isUpdating(fleet: Fleet | null): boolean {
  return fleet?.state === 'outdated' && fleet.problems.length === 0;
}

/**
 * Returns the problems of the fleet's data, one sentence for each: a failed update, and the
 * problems in the response.
 */
export function problemsOf({ fleet }: FleetAnswers): string[] {
  const problems = fleet.value?.problems ?? [];
  return fleet.why === null || fleet.value === null
    ? [...problems]
    : [trans.__('The update failed: %1', fleet.why), ...problems];
}
