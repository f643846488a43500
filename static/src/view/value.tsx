import type { CSSProperties } from 'preact';

import { DASH, formatDuration } from '../lib/format';
import { trans } from '../lib/translation';
import { describeAbsence } from '../model/describe';
import { absenceOf, readingTime, valueOf } from '../model/reading';
import type { Reading } from '../wire';

/**
 * The age above which a slow reading, such as a limit, is outdated. Slow readings are read again
 * every half minute.
 */
const SLOW_READING_MS = 60_000;

/** The values that determine whether a reading is current. */
export interface Freshness {
  now_ms: number;
  /**
   * Whether all readings of the sample are outdated, because the GPU does not respond or the sample
   * is old.
   */
  stale: boolean;
}

interface ValueProps {
  /**
   * The path of the reading in the sample. Tests find the element by this path, which is in the
   * attribute `data-reading`.
   */
  id: string;
  /** The text after the value: the total or the limit. */
  rest?: string;
  class?: string;
  nearLimit?: boolean;
  style?: CSSProperties;
}

interface ReadingProps<T> extends ValueProps {
  /** The reading; `null` until it has been read. */
  reading: Reading<T> | null;
  format: (value: T) => string;
  freshness: Freshness;
}

/** The value of a reading, or a dash with the reason why it is missing. */
export function ReadingValue<T>({ reading, format, freshness, ...rest }: ReadingProps<T>) {
  const value = valueOf(reading);
  if (reading === null || value === null) {
    const absence = absenceOf(reading);
    const reason = absence === null ? trans.__('not read yet') : describeAbsence(absence);
    return <Value {...rest} absent={reason} />;
  }
  const at_ms = readingTime(reading);
  const age_ms = at_ms === null ? 0 : freshness.now_ms - at_ms;
  const isStale = freshness.stale || age_ms > SLOW_READING_MS;
  const title = at_ms === null ? undefined : trans.__('read %1 ago', formatDuration(age_ms));
  return <Value {...rest} text={format(value)} isStale={isStale} title={title} />;
}

/** A value of the past. If `text` is `null`, there is no sample at this time. */
export function PastValue({ text, ...rest }: ValueProps & { text: string | null }) {
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
}) {
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

/**
 * A bar that shows a share from 0 to 1. If the share is NaN, the bar is hidden but keeps its space.
 * Screen readers ignore the bar and read the number next to it.
 */
export function Meter({
  share,
  color,
  title,
}: {
  share: number;
  /** The name of a color of the style sheet, such as `memory`. */
  color?: string;
  title?: string | undefined;
}) {
  const width = `${(Math.min(1, share) * 100).toFixed(1)}%`;
  const style = color === undefined ? { width } : { width, background: `var(--gpumon-${color})` };
  return (
    <span
      class="gpumon-meter"
      aria-hidden="true"
      data-empty={Number.isNaN(share) ? '' : undefined}
      title={title}
    >
      <span class="gpumon-meter-fill" style={style} />
    </span>
  );
}
