/** The status of the displayed data: a keyword for programs and a short text for users. */

import { formatDuration, formatHourAndMinute, formatSeconds } from '../lib/format';
import { trans } from '../lib/translation';
import type { CollectorStatus, Playback } from '../wire';
import type { Diagnosis, Store } from './store';

export type ConnectionState =
  | 'connecting'
  | 'live'
  | 'replay'
  | 'stale'
  | 'reconnecting'
  | 'collector-starting'
  | 'collector-restarting'
  | 'collector-unavailable'
  | 'collector-paused';

export interface Status {
  state: ConnectionState;
  text: string;
  title: string;
  /**
   * `pending` resolves automatically, `error` requires action, and `paused` was requested by a
   * user.
   */
  level: 'ok' | 'pending' | 'error' | 'paused';
}

/**
 * The displayed interval between drawings is rounded to one of these values, so that the text does
 * not change with every small variation of the interval.
 */
const DRAWN_STEPS_MS = [250, 500, 1000];

/**
 * Returns whether the displayed readings are current. The readings of a recording count as current
 * if they belong to its current time.
 */
export function isFresh(status: Status): boolean {
  return status.state === 'live' || status.state === 'replay';
}

/**
 * Returns the status of the whole path of the data, from the driver to this page. `localNowMs` is
 * the current time of the local clock, and `drawn_ms` is the minimum time between two drawings of
 * new samples.
 */
export function statusOf(store: Store, localNowMs: number, drawn_ms = 0): Status {
  const { phase, collector } = store;
  const level = store.diagnosis === null ? 'pending' : 'error';
  if (phase.phase === 'waiting') {
    const left = formatSeconds(Math.max(1000, phase.retry_at_ms - localNowMs));
    const title = trans.__('The connection to gpumon was lost. Retrying automatically.');
    return { state: 'reconnecting', text: trans.__('Reconnecting in %1', left), title, level };
  }
  if (phase.phase === 'connecting' || collector === null) {
    const title = trans.__('Waiting for gpumon.');
    return phase.phase === 'connecting' && phase.attempt > 0
      ? { state: 'reconnecting', text: trans.__('Reconnecting'), title, level }
      : { state: 'connecting', text: trans.__('Connecting'), title, level };
  }
  const playback = store.inventory?.playback;
  if (playback !== undefined && collector.state === 'running') {
    return replayStatus(playback);
  }
  const title = collector.message ?? '';
  switch (collector.state) {
    case 'starting':
      return { state: 'collector-starting', text: trans.__('Starting'), title, level: 'pending' };
    case 'restarting':
      return {
        state: 'collector-restarting',
        text: trans.__('Collector restarting'),
        title,
        level: 'pending',
      };
    case 'unavailable':
      return {
        state: 'collector-unavailable',
        text: trans.__('No readings'),
        title,
        level: 'error',
      };
    case 'paused':
      return { state: 'collector-paused', text: trans.__('Paused'), title, level: 'paused' };
    case 'running':
    default:
      return liveOrStaleStatus(store, drawn_ms);
  }
}

/** Returns the status of a recording, which is never live. */
function replayStatus({ speed, paused, ended }: Playback): Status {
  const text = ended
    ? trans.__('Ended')
    : paused
      ? trans.__('Paused')
      : trans.__('Replay · %1×', String(speed));
  const title = trans.__('A recording is being replayed. It does not show the current state.');
  return { state: 'replay', text, title, level: 'paused' };
}

function liveOrStaleStatus(store: Store, drawn_ms: number): Status {
  const interval_ms = store.sample?.interval_ms ?? 1000;
  const silent_ms = store.clock.now() - Math.max(store.sample?.at_ms ?? 0, store.expecting_from_ms);
  if (silent_ms > 3 * interval_ms + 2000) {
    const title = trans.__('Connected, but no samples are arriving.');
    return {
      state: 'stale',
      text: trans.__('No sample for %1', formatDuration(silent_ms)),
      title,
      level: 'pending',
    };
  }
  const every = formatSeconds(interval_ms);
  const joined = store.collector?.joined;
  const sampled =
    joined === undefined
      ? trans.__('One sample every %1.', every)
      : trans.__('One sample every %1, read by the server at %2.', every, joined);
  const isSlower = drawn_ms > 1.5 * interval_ms;
  const shown_ms = DRAWN_STEPS_MS.find((step_ms) => step_ms >= drawn_ms) ?? drawn_ms;
  const shown = formatSeconds(isSlower ? shown_ms : interval_ms);
  const title = isSlower
    ? `${sampled} ${trans.__('Numbers are updated every %1. Charts show all samples.', shown)}`
    : sampled;
  return { state: 'live', text: trans.__('Live · every %1', shown), title, level: 'ok' };
}

/**
 * Capitalizes a collector's message, which starts in lowercase because it usually follows a colon.
 */
function capitalize(message: string | null): string | null {
  return message === null ? null : message.charAt(0).toUpperCase() + message.slice(1);
}

/**
 * Returns the notice that replaces the GPUs or is shown above them, or `null` if there is nothing
 * to explain.
 */
export function noticeOf(
  store: Store,
  status: Status,
  connectingMessage: string,
): Diagnosis | null {
  const message = capitalize(store.collector?.message ?? null);
  switch (status.state) {
    case 'connecting':
      return store.diagnosis ?? { title: trans.__('Connecting'), message: connectingMessage };
    case 'reconnecting':
      if (store.diagnosis !== null) {
        return store.diagnosis;
      }
      return store.inventory === null
        ? {
            title: trans.__('No connection'),
            message: trans.__('gpumon is not responding. Retrying automatically.'),
          }
        : null;
    case 'collector-starting':
      return {
        title: trans.__('Starting'),
        message: message ?? trans.__('The collector has started and is reading the driver.'),
      };
    case 'collector-restarting':
      return {
        title: trans.__('Collector restarting'),
        message: message ?? trans.__('The collector exited and is being restarted.'),
      };
    case 'collector-unavailable':
      return {
        title: trans.__('No GPU readings'),
        message: trans.__(
          '%1. Retrying automatically. For details, run:',
          message ?? trans.__('Library, driver or GPU not found'),
        ),
        command: 'gpumon doctor',
      };
    case 'collector-paused':
      return pauseNotice(store.collector);
    case 'live':
    case 'replay':
    case 'stale':
      return store.inventory?.gpus.length === 0
        ? {
            title: trans.__('No GPU'),
            message: trans.__('The driver is loaded, but reports no GPU.'),
          }
        : store.diagnosis;
  }
}

/**
 * Returns the notice for paused sampling. A pause is not an error, so the notice states how to end
 * it.
 */
function pauseNotice(collector: CollectorStatus | null): Diagnosis {
  const message = collector?.message ?? null;
  const end_ms = collector?.resumes_ms;
  const end =
    end_ms === undefined
      ? trans.__('To resume, run:')
      : trans.__('Resumes automatically at %1. To resume now, run:', formatHourAndMinute(end_ms));
  const command = collector?.joined === undefined ? 'gpumon resume' : 'sudo gpumon resume';
  // A collector that hangs in the driver keeps the GPUs open. Its message explains this, and does
  // not start with `paused:`.
  if (message !== null && !message.startsWith('paused: ')) {
    return { title: trans.__('Paused'), message: `${capitalize(message) ?? ''}. ${end}`, command };
  }
  return {
    title: trans.__('Paused: gpumon has released the GPUs'),
    message: `${trans.__('gpumon does not access the GPUs, so that they can be reset or repartitioned.')} ${end}`,
    command,
  };
}
