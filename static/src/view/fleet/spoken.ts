/** Tells whoever hears the page what a key has brought about, and when the state of the fleet changes. */

import { h, setText } from '../../lib/dom';
import { count } from '../../lib/format';
import { trans } from '../../lib/translation';
import type { HeadState } from './head';

/** Who types is told of the result when they pause. */
const PAUSE_MS = 600;

export class Spoken {
  readonly element = h('div', {
    class: 'gpumon-visually-hidden',
    role: 'status',
    'aria-live': 'polite',
  });
  private last: HeadState | null = null;
  private matches: number | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isExpected = false;
  private text = '';

  say(text: string): void {
    setText(this.element, text);
  }

  state(state: HeadState): void {
    if (state !== this.last) {
      this.last = state;
      this.say(
        {
          loading: trans.__('Fleet: loading'),
          live: trans.__('Fleet: up to date'),
          partial: trans.__('Fleet: some of it could not be read'),
          updating: trans.__('Fleet: updating'),
          outdated: trans.__('Fleet: outdated'),
          error: trans.__('Fleet: no answer'),
        }[state],
      );
    }
  }

  /** `null` without a filter. */
  matching(gpus: number | null): void {
    if (gpus !== this.matches) {
      this.matches = gpus;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        if (gpus !== null) {
          this.say(trans._n('%1 GPU matches', '%2 GPUs match', gpus, count(gpus)));
        }
      }, PAUSE_MS);
    }
  }

  /** What is selected next was selected by keys. */
  expectSelection(isExpected: boolean): void {
    this.isExpected = isExpected;
  }

  /** Values change by themselves, and are told only once for each selection. */
  selected(text: (() => string) | null): void {
    if (this.isExpected) {
      this.isExpected = false;
      this.text = text?.() ?? trans.__('None selected');
      this.say(this.text);
    }
  }
}
