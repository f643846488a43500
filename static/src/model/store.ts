/** Everything the view shows, and how frames change it. */

import { ServerClock } from '../lib/clock';
import type { SocketPhase } from '../lib/socket';
import { Timeline, type Column } from '../lib/timeline';
import type { CollectorStatus, Event, GpuDetails, Hello, History, Inventory, Sample, ServerFrame } from '../wire';
import { keepEvents } from './event';
import { seriesKey } from './gpu';
import { SlotKeeper } from './holders';
import { HOST_METRICS, METRICS, MORE_METRICS } from './metric';
import { valueOf } from './reading';

/** Why there is no connection, and what to do about it, as found out by whoever embeds the view. */
export interface Diagnosis {
  title: string;
  message: string;
  /** What to type in a terminal to mend it or to learn more. */
  command?: string;
}

/** More than the longest span of the view at the fastest rate; at one sample per second, 100 min. */
const CAPACITY = 6000;
/** Less than half of the time between two moments of a server's history. */
const SAME_MS = 400;

export class Store {
  readonly clock: ServerClock;
  readonly timeline = new Timeline(CAPACITY);
  /** The colours of those who hold GPUs, the same in every view. */
  readonly slots = new SlotKeeper();
  phase: SocketPhase = { phase: 'connecting', attempt: 0 };
  diagnosis: Diagnosis | null = null;
  version: string | null = null;
  collector: CollectorStatus | null = null;
  inventory: Inventory | null = null;
  sample: Sample | null = null;
  /** What changes slowly, by index. */
  readonly details = new Map<number, GpuDetails>();
  /** The newest last. */
  events: readonly Event[] = [];
  /** Metrics that are kept besides those of an overview. */
  private more: ReadonlySet<string> = new Set();
  /** Samples that this client was too slow for. */
  missed = 0;
  /** Since when samples can be expected, on the server's clock: a pause is no silence. */
  expecting_from_ms = 0;

  constructor(localNow: () => number = Date.now) {
    this.clock = new ServerClock(localNow);
  }

  /** Takes in a frame; one of an unknown type, from a newer server, is left out. */
  apply(frame: ServerFrame): void {
    switch (frame.type) {
      case 'hello':
        this.hello(frame);
        break;
      case 'inventory':
        this.inventory = frame;
        break;
      case 'sample':
        this.clock.observe(frame.at_ms);
        this.add(frame);
        break;
      case 'event':
        this.events = keepEvents([...this.events, frame]);
        break;
      case 'details':
        this.details.set(frame.index, frame);
        break;
      case 'trace':
        // It comes to those who ask for it, and nothing here does.
        break;
      case 'collector':
        this.collector = frame;
        this.expecting_from_ms = this.clock.now();
        break;
      case 'history':
        this.history(frame);
        break;
      case 'lagged':
        this.missed += frame.missed;
        break;
      case 'heartbeat':
        this.clock.observe(frame.at_ms);
        break;
      case 'error':
        // It answers a frame of ours: a fault of this program, which nobody who looks at GPUs can mend.
        console.warn(`gpumon: the server did not understand a message: ${frame.message}`);
        break;
    }
  }

  /** Keeps these metrics, too, from now on. */
  keep(metrics: ReadonlySet<string>): void {
    this.more = metrics;
  }

  /** The reader looks again after a pause. */
  resumed(): void {
    this.expecting_from_ms = this.clock.now();
  }

  /** A longer time than this between two samples is a gap. */
  get gap_ms(): number {
    return Math.max(2.5 * (this.sample?.interval_ms ?? 1000), 1500);
  }

  private hello(hello: Hello): void {
    this.clock.observe(hello.at_ms);
    this.diagnosis = null;
    this.version = hello.version;
    this.collector = hello.collector;
    this.inventory = hello.inventory;
    this.sample = hello.sample;
    this.events = keepEvents(hello.events);
    this.details.clear();
    for (const details of hello.details) {
      this.details.set(details.index, details);
    }
    this.expecting_from_ms = this.clock.now();
    if ((this.timeline.times_ms.at(-1) ?? 0) > hello.at_ms + this.gap_ms) {
      // The server's clock was set back, or it is another server.
      this.timeline.clear();
    }
    this.history(hello.history);
    if (hello.sample !== null) {
      this.add(hello.sample);
    }
  }

  private history(history: History): void {
    const columns = new Map<string, Column>(Object.entries(history.host ?? {}));
    for (const gpu of history.gpus) {
      for (const [id, column] of Object.entries(gpu.metrics)) {
        columns.set(seriesKey({ index: -1, uuid: gpu.uuid }, id), column);
      }
    }
    this.timeline.merge(history.times_ms, columns, SAME_MS, this.gap_ms);
  }

  private add(sample: Sample): void {
    this.sample = sample;
    const moment = new Map<string, number | null>();
    const kept = [...METRICS, ...MORE_METRICS.filter(({ id }) => this.more.has(id))];
    for (const gpu of sample.gpus) {
      for (const metric of kept) {
        // What a GPU that does not answer last said is shown as a number, but is no part of the line.
        const value = gpu.health.state === 'ok' ? valueOf(metric.read(gpu)) : null;
        moment.set(seriesKey(gpu, metric.id), value);
      }
    }
    for (const metric of HOST_METRICS) {
      if (this.more.has(metric.id)) {
        moment.set(metric.id, valueOf(metric.read(sample.host)));
      }
    }
    this.timeline.push(sample.at_ms, moment, this.gap_ms);
  }
}
