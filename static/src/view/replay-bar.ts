/** The controls of a recording that is played: pause, speed and time, the same for everybody who looks at its server. */

import { button, h, setAttribute, setText } from '../lib/dom';
import { dateAndTime } from '../lib/format';
import { trans } from '../lib/translation';
import { OWN_HEADERS, answerOf, type Request } from '../model/request';
import type { Playback } from '../wire';

/** In times of the real speed. */
const SPEEDS = [0.5, 1, 2, 5, 10, 30, 60, 300];

/** What is to be different from now on. */
type Order = { paused: boolean } | { speed: number } | { at_ms: number };

export class ReplayBar {
  private readonly pause: HTMLButtonElement;
  private readonly speed = h('select', {
    class: 'gpumon-chip',
    'aria-label': trans.__('Playback speed'),
  });
  private readonly slider = h('input', {
    type: 'range',
    class: 'gpumon-replay-slider',
    'aria-label': trans.__('Time in the recording'),
  });
  private readonly time = h('time', { class: 'gpumon-replay-time' });
  private readonly refusal = h('span', { class: 'gpumon-replay-refusal', role: 'alert' });
  readonly element: HTMLElement;
  private playback: Playback | null = null;
  /** The time belongs to whoever drags the slider. */
  private dragging = false;

  constructor(private readonly request: Request | undefined) {
    this.pause = button({ class: 'gpumon-chip', 'data-testid': 'gpumon-replay-pause' }, () => {
      const { playback } = this;
      if (playback !== null) {
        void this.send({ paused: !(playback.paused || playback.ended) });
      }
    });
    this.speed.addEventListener(
      'change',
      () => void this.send({ speed: Number(this.speed.value) }),
    );
    this.slider.addEventListener('input', () => {
      this.dragging = true;
      this.showTime(Number(this.slider.value));
    });
    this.slider.addEventListener('change', () => {
      this.dragging = false;
      void this.send({ at_ms: Math.round(Number(this.slider.value)) });
    });
    this.element = h(
      'div',
      {
        class: 'gpumon-replay',
        role: 'group',
        'aria-label': trans.__('Recording'),
        'data-testid': 'gpumon-replay',
      },
      this.pause,
      this.speed,
      this.slider,
      this.time,
      this.refusal,
    );
    for (const control of [this.pause, this.speed, this.slider]) {
      control.disabled = request === undefined;
    }
  }

  update(playback: Playback, at_ms: number): void {
    this.playback = playback;
    const { from_ms, to_ms, speed } = playback;
    setText(
      this.pause,
      playback.ended
        ? trans.__('Restart')
        : playback.paused
          ? trans.__('Resume')
          : trans.__('Pause'),
    );
    const speeds = [...new Set([...SPEEDS, speed])].sort((a, b) => a - b);
    if (this.speed.length !== speeds.length) {
      this.speed.replaceChildren(
        ...speeds.map((one) => h('option', { value: String(one) }, trans.__('%1×', String(one)))),
      );
    }
    this.speed.value = String(speed);
    setAttribute(this.slider, 'min', String(from_ms));
    setAttribute(this.slider, 'max', String(Math.max(to_ms, from_ms + 1)));
    if (!this.dragging) {
      this.slider.value = String(at_ms);
      this.showTime(at_ms);
    }
  }

  private showTime(at_ms: number): void {
    setText(this.time, dateAndTime(at_ms));
    setAttribute(this.slider, 'aria-valuetext', dateAndTime(at_ms));
  }

  private async send(order: Order): Promise<void> {
    if (this.request === undefined) {
      return;
    }
    const init = { method: 'POST', headers: OWN_HEADERS, body: JSON.stringify(order) };
    const { why } = await answerOf(this.request('api/v1/replay', init));
    setText(this.refusal, why ?? '');
  }
}
