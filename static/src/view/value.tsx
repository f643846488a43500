import type { ComponentChild, CSSProperties } from 'preact';

import { DASH, duration } from '../lib/format';
import { trans } from '../lib/translation';
import { describeAbsence } from '../model/describe';
import { absenceOf, takenAt, valueOf } from '../model/reading';
import type { Reading } from '../wire';

/** A slow reading, such as a limit, is read again within half a minute. */
const SLOW_READING_MS = 60_000;

/** How the readings of one sample have to be judged. */
export interface Freshness {
  now_ms: number;
  /** Nothing in this sample is current: the GPU does not answer, or the sample is old. */
  stale: boolean;
}

interface ValueProps {
  /** The reading's path in the sample; tests find it as `data-reading`. */
  id: string;
  /** The total or the limit of the value. */
  rest?: string;
  class?: string;
  nearLimit?: boolean;
  style?: CSSProperties;
}

export interface ReadingProps<T> extends ValueProps {
  /** `null` until it has been read. */
  reading: Reading<T> | null;
  format: (value: T) => string;
  freshness: Freshness;
}

/** A reading: its value, or a dash with the reason for its absence. */
export function ReadingValue<T>({
  reading,
  format,
  freshness,
  ...rest
}: ReadingProps<T>): ComponentChild {
  const value = valueOf(reading);
  if (reading === null || value === null) {
    const absence = absenceOf(reading);
    const reason = absence === null ? trans.__('not read yet') : describeAbsence(absence);
    return <Value {...rest} absent={reason} />;
  }
  const at_ms = takenAt(reading);
  const age_ms = at_ms === null ? 0 : freshness.now_ms - at_ms;
  const isStale = freshness.stale || age_ms > SLOW_READING_MS;
  const title = at_ms === null ? undefined : trans.__('read %1 ago', duration(age_ms));
  return <Value {...rest} text={format(value)} isStale={isStale} title={title} />;
}

/** A value of a moment in the past; `null` is a gap. */
export function PastValue({ text, ...rest }: ValueProps & { text: string | null }): ComponentChild {
  return text === null ? (
    <Value {...rest} absent={trans.__('no sample at this time')} />
  ) : (
    <Value {...rest} text={text} />
  );
}

function Value({
  id,
  text = DASH,
  rest = '',
  absent,
  isStale = false,
  nearLimit = false,
  title = absent,
  class: className = '',
  style,
}: ValueProps & {
  text?: string;
  absent?: string;
  isStale?: boolean;
  title?: string | undefined;
}): ComponentChild {
  const spoken = absent ?? (isStale ? trans.__('stale') : '');
  return (
    <span
      class={`gpumon-value ${className}`.trim()}
      data-absent={absent}
      data-stale={isStale ? '' : undefined}
      data-near-limit={nearLimit ? '' : undefined}
      title={title}
      style={style}
    >
      <span class="gpumon-value-main" data-reading={id}>
        {text}
      </span>
      {rest !== '' && <span class="gpumon-value-rest">{` ${rest}`}</span>}
      {spoken !== '' && <span class="gpumon-visually-hidden">{` (${spoken})`}</span>}
    </span>
  );
}
