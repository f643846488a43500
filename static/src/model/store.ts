/** Everything the view shows, and how frames change it. */

import { ServerClock } from '../lib/clock';
import type { SocketPhase } from '../lib/socket';
import { Timeline, type Column } from '../lib/timeline';
import type { TimeWindow } from '../chart/content';
import type {
  CollectorStatus,
  Event,
  FiringAlert,
  GpuDetails,
  GpuSample,
  Hello,
  History,
  Inventory,
  Process,
  RunState,
  Sample,
  ServerFrame,
  Trace,
} from '../wire';
import { OVERVIEW } from '../wire/fields';
import { CellLog } from './cell-log';
import { keepEvents, withEvent } from './event';
import { seriesByKey, seriesKey } from './gpu';
import { withKnownGpus, withKnownReadings } from './known-gpu';
import { ColorSlots } from './color-slots';
import { heldBy, heldKey, holderOf } from './holders';
import { ALL_GPU_METRICS, ALL_HOST_METRICS, HELD, METRICS, MIG, MIG_METRICS } from './metric';
import { valueOf } from './reading';

/** Why there is no connection, and what to do about it, as found out by whoever embeds the view. */
export interface Diagnosis {
  title: string;
  message: string;
  /** What to type in a terminal to mend it or to learn more. */
  command?: string;
}

/** Somebody who held a GPU, and when that was last so. */
export interface FormerHolder {
  process: Process;
  seen_ms: number;
}

/**
 * More than the longest span of the view at the fastest rate; at one sample per second, 100 min.
 */
const CAPACITY = 6000;
/**
 * What the driver itself records in a little more than the longest span of a chart, every 20 ms.
 */
const TRACE_CAPACITY = 20_000;
const TRACE_GAP_MS = 1000;
/** Less than half of the time between two moments of a server's history. */
const SAME_MS = 400;
/** A little more than half of it. */
const NEAR_MS = 600;
/**
 * Means of ten seconds, each in their middle, that an earlier server has left: no gap is shorter.
 */
const MEANS_REACH_MS = 15_000;

export class Store {
  /** Memory that will be full later than so need not worry anybody yet. */
  memoryHorizon_ms = 5 * 60_000;
  readonly clock: ServerClock;
  readonly timeline = new Timeline(CAPACITY);
  /** What notebooks' cells took, where the view stands beside notebooks. */
  readonly cells = new CellLog();
  /** The colors of those who hold GPUs, the same in every view. */
  readonly slots = new ColorSlots();
  /**
   * What the driver itself recorded of the power of each GPU, by its key; for those who asked for
   * it.
   */
  readonly traces = new Map<string, Timeline>();
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
  /** The alerts of people's own rules that fire now, the worst first. */
  firing: readonly FiringAlert[] = [];
  /** Workloads that run or did, by name, for those who asked for them; the oldest first. */
  readonly runs = new Map<string, RunState>();
  /** Who held GPUs in the history that came last, by UUID. */
  formerHolders: ReadonlyMap<string, readonly FormerHolder[]> = new Map();
  /** Metrics that are kept besides those of an overview. */
  private more: ReadonlySet<string> = new Set();
  private kept = METRICS;
  private keptOfHost: typeof ALL_HOST_METRICS = [];
  /** Whether the server tells of a fleet, too. */
  hasFleet = false;
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
        this.inventory = withKnownGpus(frame, this.inventory);
        this.pinClock();
        break;
      case 'sample':
        this.clock.observe(frame.at_ms);
        this.add(frame);
        break;
      case 'event':
        this.events = withEvent(this.events, frame);
        break;
      case 'alerts':
        this.firing = frame.firing;
        break;
      case 'details':
        this.details.set(frame.index, frame);
        break;
      case 'trace':
        this.trace(frame);
        break;
      case 'run':
        this.runs.set(frame.run, frame);
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
        // The answer to a frame of this client: a bug, which users cannot fix.
        console.warn(`gpumon: the server did not understand a message: ${frame.message}`);
        break;
    }
  }

  /**
   * Keeps these metrics, too, from now on; returns all, where there are more than an overview has.
   */
  trackMetrics(metrics: readonly string[]): string[] {
    this.more = new Set([...this.more, ...metrics]);
    this.kept = ALL_GPU_METRICS.filter(({ id }) => OVERVIEW.includes(id) || this.more.has(id));
    this.keptOfHost = ALL_HOST_METRICS.filter(({ id }) => this.more.has(id));
    const ids = [...this.kept, ...this.keptOfHost, ...(this.more.has(MIG) ? MIG_METRICS : [])].map(
      ({ id }) => id,
    );
    return this.more.size === 0 ? [] : [...ids, ...(this.more.has(HELD) ? [HELD] : [])];
  }

  /** Samples are expected from now on, after a pause. */
  resumed(): void {
    this.expecting_from_ms = this.clock.now();
  }

  /** A longer time than this between two samples is a gap. */
  get gap_ms(): number {
    return Math.max(2.5 * (this.sample?.interval_ms ?? 1000), 1500);
  }

  window(from_ms: number, to_ms: number): TimeWindow {
    const { times_ms, revision } = this.timeline;
    return { times_ms, revision, from_ms, to_ms, gap_ms: this.gap_ms };
  }

  private hello(hello: Hello): void {
    this.clock.observe(hello.at_ms);
    this.diagnosis = null;
    this.version = hello.version;
    this.collector = hello.collector;
    this.inventory = hello.inventory && withKnownGpus(hello.inventory, this.inventory);
    this.events = keepEvents(hello.events);
    this.firing = hello.alerts ?? [];
    this.hasFleet = hello.fleet ?? false;
    this.runs.clear();
    this.details.clear();
    for (const details of hello.details) {
      this.details.set(details.index, details);
    }
    this.pinClock(hello.sample);
    this.expecting_from_ms = this.clock.now();
    if ((this.timeline.times_ms.at(-1) ?? 0) > hello.at_ms + this.gap_ms) {
      // The server's clock was set back, or it is another server.
      this.timeline.clear();
    }
    this.history(hello.history);
    if (hello.sample === null) {
      this.sample = null;
    } else {
      this.add(hello.sample);
    }
  }

  /** What is played from a recording has the time of its newest sample. */
  private pinClock(newest: Sample | null = this.sample): void {
    const is_played = this.inventory?.playback !== undefined;
    this.clock.pin(is_played ? (newest?.at_ms ?? null) : null);
  }

  private history(history: History): void {
    const columns = seriesByKey<Column>(history);
    const former = new Map<string, readonly FormerHolder[]>();
    for (const { uuid, holders = [] } of history.gpus) {
      const gpu = { index: -1, uuid };
      for (const { process, memory_bytes } of holders) {
        columns.set(heldKey(gpu, holderOf(process)), memory_bytes);
      }
      const seenLast = (bytes: Column): number =>
        history.times_ms[bytes.findLastIndex((held) => held !== null)] ?? 0;
      former.set(
        uuid,
        holders.map(({ process, memory_bytes }) => ({ process, seen_ms: seenLast(memory_bytes) })),
      );
    }
    this.formerHolders = former;
    const means = { count: history.means ?? 0, reach_ms: MEANS_REACH_MS };
    this.timeline.merge(history.times_ms, columns, SAME_MS, NEAR_MS, this.gap_ms, means);
  }

  private add(reported: Sample): void {
    const sample = withKnownReadings(reported, this.sample, this.inventory);
    this.sample = sample;
    this.pinClock();
    const values = new Map<string, number | null>();
    for (const gpu of sample.gpus) {
      for (const metric of this.kept) {
        // What a GPU that does not answer last said is shown as a number, but is no part of the
        // line.
        const value = gpu.health.state === 'ok' ? valueOf(metric.read(gpu)) : null;
        values.set(seriesKey(gpu, metric.id), value);
      }
      if (gpu.health.state === 'ok') {
        this.addHoldersAndMig(gpu, values);
      }
    }
    for (const metric of this.keptOfHost) {
      values.set(metric.id, valueOf(metric.read(sample.host)));
    }
    this.timeline.push(sample.at_ms, values, this.gap_ms);
  }

  /** What each holder has of a GPU, and what its MIG devices do. */
  private addHoldersAndMig(gpu: GpuSample, values: Map<string, number | null>): void {
    if (this.more.has(HELD)) {
      for (const [holder, bytes] of heldBy(gpu)) {
        values.set(heldKey(gpu, holder), bytes);
      }
    }
    if (this.more.has(MIG)) {
      for (const device of valueOf(gpu.mig_devices) ?? []) {
        for (const { id, read } of MIG_METRICS) {
          values.set(seriesKey({ index: -1, uuid: device.uuid }, id), valueOf(read(device)));
        }
      }
    }
  }

  private trace(trace: Trace): void {
    if (trace.metric !== 'power_watts') {
      return;
    }
    const key = seriesKey(trace, trace.metric);
    let timeline = this.traces.get(key);
    if (timeline === undefined) {
      timeline = new Timeline(TRACE_CAPACITY);
      this.traces.set(key, timeline);
    }
    const gap_ms = trace.gap ? 0 : TRACE_GAP_MS;
    const watts = new Map<string, number | null>();
    trace.offsets_us.forEach((offset_us, i) => {
      watts.set(key, trace.values[i] ?? null);
      timeline.push((trace.start_us + offset_us) / 1000, watts, i === 0 ? gap_ms : TRACE_GAP_MS);
    });
  }
}
