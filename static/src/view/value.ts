/** A reading on the screen: its value, or a dash with the reason. */

import { DASH, duration } from '../lib/format';
import { h, setAttribute, setText } from '../lib/dom';
import { trans } from '../lib/translation';
import { absenceOf, takenAt, valueOf } from '../model/reading';
import { describeAbsence } from '../model/describe';
import type { Reading } from '../wire';

/** A slow reading, such as a limit, is read again within half a minute. */
const SLOW_READING_MS = 60_000;

/** How the readings of one sample have to be judged. */
export interface Freshness {
  now_ms: number;
  /** Nothing in this sample is current: the GPU does not answer, or the sample is old. */
  stale: boolean;
}

export class ReadingValue {
  readonly element: HTMLElement;
  private readonly main: HTMLElement;
  private readonly rest: HTMLElement;
  private readonly screenReaderText: HTMLElement;

  /** `id` is the reading's path in the sample; tests find it as `data-reading`. */
  constructor(id: string, className = '') {
    this.main = h('span', { class: 'gpumon-value-main', 'data-reading': id });
    this.rest = h('span', { class: 'gpumon-value-rest' });
    this.screenReaderText = h('span', { class: 'gpumon-visually-hidden' });
    this.element = h(
      'span',
      { class: `gpumon-value ${className}`.trim() },
      this.main,
      this.rest,
      this.screenReaderText,
    );
  }

  /** Shows a reading; `format` is given its value. */
  update<T>(
    reading: Reading<T> | null,
    format: (value: T) => string,
    freshness: Freshness,
    rest = '',
  ): void {
    const value = valueOf(reading);
    if (reading === null || value === null) {
      const absence = absenceOf(reading);
      this.absent(absence === null ? trans.__('not read yet') : describeAbsence(absence), rest);
      return;
    }
    const at_ms = takenAt(reading);
    const age_ms = at_ms === null ? 0 : freshness.now_ms - at_ms;
    const stale = freshness.stale || age_ms > SLOW_READING_MS;
    this.write(format(value), rest);
    setAttribute(this.element, 'data-absent', null);
    setAttribute(this.element, 'data-stale', stale ? '' : null);
    setAttribute(
      this.element,
      'title',
      at_ms === null ? null : trans.__('read %1 ago', duration(age_ms)),
    );
    setText(this.screenReaderText, stale ? ` (${trans.__('stale')})` : '');
  }

  /** Shows what is known of a moment in the past; `null` is a gap. */
  showPast(text: string | null, rest = ''): void {
    if (text === null) {
      this.absent(trans.__('no sample at this time'), rest);
      return;
    }
    this.write(text, rest);
    setAttribute(this.element, 'data-absent', null);
    setAttribute(this.element, 'data-stale', null);
    setText(this.screenReaderText, '');
  }

  private absent(reason: string, rest: string): void {
    this.write(DASH, rest);
    setAttribute(this.element, 'data-absent', reason);
    setAttribute(this.element, 'data-stale', null);
    setAttribute(this.element, 'title', reason);
    setText(this.screenReaderText, ` (${reason})`);
  }

  private write(main: string, rest: string): void {
    setText(this.main, main);
    setText(this.rest, rest === '' ? '' : ` ${rest}`);
  }
}
