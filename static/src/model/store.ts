/**
 * The data that the views show, and their updates by frames. They include the server's time, and
 * the last readings of GPUs that a restarted server cannot read.
 */

import type { TimeWindow } from '../chart/content';
import type { SocketPhase } from '../lib/socket';
import { Timeline, type Column } from '../lib/timeline';
import type {
  Gpu,
  GpuSample,
  Health,
  Inventory,
  Sample,
  CollectorStatus,
  Event,
  FiringAlert,
  GpuDetails,
  Hello,
  History,
  Process,
  RunState,
  ServerFrame,
  Trace,
} from '../wire';
import { OVERVIEW } from '../wire/fields';
import { CellLog } from './cell-log';
import { ColorSlots } from './color-slots';
import { keepNewestEvents, addEvent } from './event';
import { seriesByKey, seriesKey } from './gpu';
import { memoryByHolder, holderSeriesKey, holderId } from './holders';
import {
  ALL_GPU_METRICS,
  ALL_HOST_METRICS,
  HOLDER_MEMORY,
  METRICS,
  ALL_MIG_METRICS,
  MIG_METRICS,
} from './metric';
import { valueOf } from './reading';

/** An estimate of the server's clock, because the clocks of server and client may differ. */
export class ServerClock {
  private offset_ms = 0;
  private pinned_ms: number | null = null;

  constructor(private readonly localNow: () => number = Date.now) {}

  /**
   * Updates the estimate from a frame that the server sent at `at_ms`. The frame with the shortest
   * delay gives the best estimate.
   */
  observeFrameTime(at_ms: number): void {
    const seen_ms = at_ms - this.localNow();
    const jumped = Math.abs(seen_ms - this.offset_ms) > 3000;
    if (jumped || seen_ms > this.offset_ms) {
      this.offset_ms = seen_ms;
    }
  }

  /**
   * Stops the clock at the time of a recording, which may be played at any speed. `null` releases
   * the clock.
   */
  pinTime(at_ms: number | null): void {
    this.pinned_ms = at_ms;
  }

  now(): number {
    return this.pinned_ms ?? this.localNow() + this.offset_ms;
  }
}

/**
 * Restores the GPUs that a restarted server cannot read, which have no UUID. Each of them is
 * replaced by the GPU that had its index before the restart, unless that GPU has another index by
 * now.
 */
function restoreUnreadGpus(inventory: Inventory, before: Inventory | null): Inventory {
  if (before?.hostname !== inventory.hostname) {
    return inventory;
  }
  const listed = new Set(inventory.gpus.map(({ uuid }) => uuid));
  const known = (gpu: Gpu): Gpu => {
    const last =
      gpu.uuid === null ? before.gpus.find(({ index }) => index === gpu.index) : undefined;
    return last === undefined || listed.has(last.uuid) ? gpu : last;
  };
  return { ...inventory, gpus: inventory.gpus.map(known) };
}

/**
 * Gives each GPU that `restoreUnreadGpus` has restored its last readings with their original times.
 * The health is that of the new sample, but a problem that already existed before the restart keeps
 * its start time.
 */
function restoreUnreadSamples(
  sample: Sample,
  before: Sample | null,
  inventory: Inventory | null,
): Sample {
  const known = (gpu: GpuSample): GpuSample => {
    const uuid = inventory?.gpus.find(({ index }) => index === gpu.index)?.uuid ?? null;
    const last = before?.gpus.find((old) => old.uuid === uuid);
    return gpu.uuid !== null || uuid === null || last === undefined
      ? gpu
      : { ...last, health: keepFailureStart(gpu.health, last.health) };
  };
  return sample.gpus.every(({ uuid }) => uuid !== null)
    ? sample
    : { ...sample, gpus: sample.gpus.map(known) };
}

function keepFailureStart(health: Health, before: Health): Health {
  return health.state !== 'ok' && before.state === health.state
    ? { ...health, since_ms: before.since_ms }
    : health;
}

/**
 * The reason why there is no connection, and how to restore it, as determined by the embedding
 * application.
 */
export interface Diagnosis {
  title: string;
  message: string;
  /** A command that fixes the problem or provides details. */
  command?: string;
}

/** A past holder of a GPU, and the last time at which it was seen. */
export interface FormerHolder {
  process: Process;
  seen_ms: number;
}

/**
 * The maximum number of samples. Even at the fastest rate, the longest live span contains fewer. At
 * one sample per second, they cover 100 min.
 */
const CAPACITY = 6000;
/**
 * The maximum number of trace values, one every 20 ms, which exceeds the longest span with traces.
 */
const TRACE_CAPACITY = 20_000;
const TRACE_GAP_MS = 1000;
/**
 * If two times differ by at most this much, they count as the same time. It is slightly less than
 * half the interval of the server's history.
 */
const MAX_EQUAL_DISTANCE_MS = 400;
/**
 * If two times differ by at most this much, their values are merged. It is slightly more than half
 * the interval of the server's history.
 */
const MAX_MERGE_DISTANCE_MS = 600;
/**
 * Earlier servers send means of ten seconds, each with the time in the middle of these ten seconds.
 * If neighboring means are at most this far apart, there is no gap between them.
 */
const MEANS_REACH_MS = 15_000;

export class Store {
  /** A warning about growing memory is shown only if the memory will be full within this time. */
  memoryHorizon_ms = 5 * 60_000;
  readonly clock: ServerClock;
  readonly timeline = new Timeline(CAPACITY);
  /** The costs of cells, if the view is shown together with notebooks. */
  readonly cells = new CellLog();
  /** The colors of holders, which are the same in every view. */
  readonly slots = new ColorSlots();
  /**
   * The driver's power traces of each GPU by series name. They are recorded only if a view has
   * requested them.
   */
  readonly traces = new Map<string, Timeline>();
  phase: SocketPhase = { phase: 'connecting', attempt: 0 };
  diagnosis: Diagnosis | null = null;
  version: string | null = null;
  collector: CollectorStatus | null = null;
  inventory: Inventory | null = null;
  sample: Sample | null = null;
  /** The slow readings by GPU index. */
  readonly details = new Map<number, GpuDetails>();
  /** The events, newest last. */
  events: readonly Event[] = [];
  /** The firing alerts of user-defined rules, the most severe first. */
  firing: readonly FiringAlert[] = [];
  /** The current and past runs by name, oldest first, for views that requested them. */
  readonly runs = new Map<string, RunState>();
  /** The holders in the last received history, by GPU UUID. */
  formerHolders: ReadonlyMap<string, readonly FormerHolder[]> = new Map();
  /** The metrics that are kept in addition to the metrics of an overview. */
  private more: ReadonlySet<string> = new Set();
  private kept = METRICS;
  private keptOfHost: typeof ALL_HOST_METRICS = [];
  /** Whether the server also has a fleet. */
  hasFleet = false;
  /**
   * The time from which samples are expected, by the server's clock. It is reset after a pause, so
   * that the samples of the pause do not count as missing.
   */
  expecting_from_ms = 0;

  constructor(localNow: () => number = Date.now) {
    this.clock = new ServerClock(localNow);
  }

  /** Applies a frame. Frames of other types, for example from a newer server, are ignored. */
  apply(frame: ServerFrame): void {
    switch (frame.type) {
      case 'hello':
        this.applyHello(frame);
        break;
      case 'inventory':
        this.inventory = restoreUnreadGpus(frame, this.inventory);
        this.pinClock();
        break;
      case 'sample':
        this.clock.observeFrameTime(frame.at_ms);
        this.addSample(frame);
        break;
      case 'event':
        this.events = addEvent(this.events, frame);
        break;
      case 'alerts':
        this.firing = frame.firing;
        break;
      case 'details':
        this.details.set(frame.index, frame);
        break;
      case 'trace':
        this.applyTrace(frame);
        break;
      case 'run':
        this.runs.set(frame.run, frame);
        break;
      case 'collector':
        this.collector = frame;
        this.resetExpectedTime();
        break;
      case 'history':
        this.applyHistory(frame);
        break;
      case 'heartbeat':
        this.clock.observeFrameTime(frame.at_ms);
        break;
      case 'error':
        // The server rejected a message of this client. This indicates a bug that users cannot fix.
        console.warn(`gpumon: the server did not understand a message: ${frame.message}`);
        break;
    }
  }

  /**
   * Adds `metrics` to the metrics that are kept. Returns the names of all kept metrics if they are
   * more than those of an overview.
   */
  trackMetrics(metrics: readonly string[]): string[] {
    this.more = new Set([...this.more, ...metrics]);
    this.kept = ALL_GPU_METRICS.filter(({ id }) => OVERVIEW.includes(id) || this.more.has(id));
    this.keptOfHost = ALL_HOST_METRICS.filter(({ id }) => this.more.has(id));
    const ids = [
      ...this.kept,
      ...this.keptOfHost,
      ...(this.more.has(ALL_MIG_METRICS) ? MIG_METRICS : []),
    ].map(({ id }) => id);
    return this.more.size === 0
      ? []
      : [...ids, ...(this.more.has(HOLDER_MEMORY) ? [HOLDER_MEMORY] : [])];
  }

  /** Expects samples only from now on. Samples from before do not count as missing. */
  resetExpectedTime(): void {
    this.expecting_from_ms = this.clock.now();
  }

  /** If two samples are more than this time apart, there is a gap between them. */
  get gap_ms(): number {
    return Math.max(2.5 * (this.sample?.interval_ms ?? 1000), 1500);
  }

  timeWindow(from_ms: number, to_ms: number): TimeWindow {
    const { times_ms, revision } = this.timeline;
    return { times_ms, revision, from_ms, to_ms, gap_ms: this.gap_ms };
  }

  private applyHello(hello: Hello): void {
    this.clock.observeFrameTime(hello.at_ms);
    this.diagnosis = null;
    this.version = hello.version;
    this.collector = hello.collector;
    this.inventory = hello.inventory && restoreUnreadGpus(hello.inventory, this.inventory);
    this.events = keepNewestEvents(hello.events);
    this.firing = hello.alerts ?? [];
    this.hasFleet = hello.fleet ?? false;
    this.runs.clear();
    this.details.clear();
    for (const details of hello.details) {
      this.details.set(details.index, details);
    }
    this.pinClock(hello.sample);
    this.resetExpectedTime();
    if ((this.timeline.times_ms.at(-1) ?? 0) > hello.at_ms + this.gap_ms) {
      // The data are cleared, because the server's clock was set back or this is another server.
      this.timeline.clear();
    }
    this.applyHistory(hello.history);
    if (hello.sample === null) {
      this.sample = null;
    } else {
      this.addSample(hello.sample);
    }
  }

  /** Sets the clock of a recording to the time of its newest sample. */
  private pinClock(newest: Sample | null = this.sample): void {
    const is_played = this.inventory?.playback !== undefined;
    this.clock.pinTime(is_played ? (newest?.at_ms ?? null) : null);
  }

  private applyHistory(history: History): void {
    const columns = seriesByKey<Column>(history);
    const former = new Map<string, readonly FormerHolder[]>();
    for (const { uuid, holders = [] } of history.gpus) {
      const gpu = { index: -1, uuid };
      for (const { process, memory_bytes } of holders) {
        columns.set(holderSeriesKey(gpu, holderId(process)), memory_bytes);
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
    this.timeline.merge(
      history.times_ms,
      columns,
      MAX_EQUAL_DISTANCE_MS,
      MAX_MERGE_DISTANCE_MS,
      this.gap_ms,
      means,
    );
  }

  private addSample(reported: Sample): void {
    const sample = restoreUnreadSamples(reported, this.sample, this.inventory);
    this.sample = sample;
    this.pinClock();
    const values = new Map<string, number | null>();
    for (const gpu of sample.gpus) {
      for (const metric of this.kept) {
        // The last reading of a GPU that does not respond is shown as a number, but not drawn as
        // part of the line.
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

  /** Adds the memory of each holder of a GPU, and the readings of its MIG devices. */
  private addHoldersAndMig(gpu: GpuSample, values: Map<string, number | null>): void {
    if (this.more.has(HOLDER_MEMORY)) {
      for (const [holder, bytes] of memoryByHolder(gpu)) {
        values.set(holderSeriesKey(gpu, holder), bytes);
      }
    }
    if (this.more.has(ALL_MIG_METRICS)) {
      for (const device of valueOf(gpu.mig_devices) ?? []) {
        for (const { id, read } of MIG_METRICS) {
          values.set(seriesKey({ index: -1, uuid: device.uuid }, id), valueOf(read(device)));
        }
      }
    }
  }

  private applyTrace(trace: Trace): void {
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
