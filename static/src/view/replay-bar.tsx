import { useState } from 'preact/hooks';

import { formatDateAndTime } from '../lib/format';
import { trans } from '../lib/translation';
import { makeRequestInit, readJsonResponse, type Request } from '../model/request';
import type { Playback } from '../wire';

/** The selectable speeds, as multiples of real time. */
const SPEEDS = [0.5, 1, 2, 5, 10, 30, 60, 300];

/** A change of the playback. */
type PlaybackChange = { paused: boolean } | { speed: number } | { at_ms: number };

/**
 * The controls of a recording that the server plays: pause, speed and time. They affect all clients
 * of the server.
 */
export function ReplayBar({
  request,
  playback,
  at_ms,
}: {
  /** Sends HTTP requests. If it is missing, the controls are disabled. */
  request: Request | undefined;
  playback: Playback;
  at_ms: number;
}) {
  /** The time of the slider while the user drags it. */
  const [dragged_ms, setDragged] = useState<number | null>(null);
  const [refusal, setRefusal] = useState('');
  const { from_ms, to_ms, speed, paused, ended } = playback;
  const shown_ms = dragged_ms ?? at_ms;
  const speeds = [...new Set([...SPEEDS, speed])].sort((a, b) => a - b);
  const send = async (order: PlaybackChange): Promise<void> => {
    if (request !== undefined) {
      const { why } = await readJsonResponse(
        request('api/v1/replay', makeRequestInit('POST', order)),
      );
      setRefusal(why ?? '');
    }
  };
  const disabled = request === undefined;
  return (
    <div
      class="gpumon-replay"
      role="group"
      aria-label={trans.__('Recording')}
      data-testid="gpumon-replay"
    >
      <button
        type="button"
        class="gpumon-chip"
        disabled={disabled}
        onClick={() => void send({ paused: !(paused || ended) })}
      >
        {ended ? trans.__('Restart') : paused ? trans.__('Resume') : trans.__('Pause')}
      </button>
      <select
        class="gpumon-chip"
        aria-label={trans.__('Playback speed')}
        disabled={disabled}
        value={String(speed)}
        onChange={({ currentTarget }) => void send({ speed: Number(currentTarget.value) })}
      >
        {speeds.map((one) => (
          <option key={one} value={String(one)}>
            {trans.__('%1×', String(one))}
          </option>
        ))}
      </select>
      <input
        type="range"
        class="gpumon-replay-slider"
        aria-label={trans.__('Time in the recording')}
        aria-valuetext={formatDateAndTime(shown_ms)}
        disabled={disabled}
        min={from_ms}
        max={Math.max(to_ms, from_ms + 1)}
        value={shown_ms}
        onInput={({ currentTarget }) => setDragged(Number(currentTarget.value))}
        onChange={({ currentTarget }) => {
          void send({ at_ms: Math.round(Number(currentTarget.value)) }).then(() =>
            setDragged(null),
          );
        }}
      />
      <time class="gpumon-replay-time">{formatDateAndTime(shown_ms)}</time>
      <span class="gpumon-replay-refusal" role="alert">
        {refusal}
      </span>
    </div>
  );
}
