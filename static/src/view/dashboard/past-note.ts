/** Says how far back the past is known, where charts show more, and how to keep more of it. */

import { button, h, setAttribute, setShown, setText } from '../../lib/dom';
import { duration, since } from '../../lib/format';
import { joined, plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { HistorySpan } from '../../wire';

/** So little missing is seen by nobody, as a share of what is shown. */
const MISSING = 0.02;
const KEEP_MORE = 'gpumon serve --data-dir DIR';

export interface Shown {
  from_ms: number;
  to_ms: number;
  now_ms: number;
  /** What the server answered last; `null` where it has not, or need not. */
  answer: HistorySpan | null;
  problem: string | null;
}

export class PastNote {
  private readonly message = h('span');
  private readonly command = h('code', {}, KEEP_MORE);
  private readonly all: HTMLElement;
  readonly element: HTMLElement;
  private oldest_ms = 0;

  /** `onAll` is called with the first moment of which anything is known. */
  constructor(onAll: (oldest_ms: number) => void) {
    this.all = button(
      { class: 'gpumon-chip' },
      () => onAll(this.oldest_ms),
      trans.__('Show all there is'),
    );
    this.element = h('div', { class: 'gpumon-past-note' }, this.message, this.command, this.all);
  }

  update({ from_ms, to_ms, now_ms, answer, problem }: Shown): void {
    const isShort = answer !== null && answer.oldest_ms - from_ms > MISSING * (to_ms - from_ms);
    const storage = answer?.storage ?? null;
    const isInMemory = isShort && storage?.on_disk === false && storage.problem === undefined;
    this.oldest_ms = answer?.oldest_ms ?? 0;
    const reach = isShort && storage !== null ? reachText(answer, now_ms) : null;
    const text = joined(
      [
        problem === null ? null : trans.__('The history cannot be read. %1', problem),
        reach,
        storage?.problem === undefined ? null : plainText(storage.problem),
        isInMemory ? trans.__('To keep up to a year on disk, start the server with:') : null,
      ],
      ' ',
    );
    setShown(this.element, text !== '');
    setAttribute(
      this.element,
      'data-level',
      problem === null && storage?.problem === undefined ? null : 'warning',
    );
    setText(this.message, text);
    setShown(this.command, isInMemory);
    setShown(this.all, isShort && answer.oldest_ms < answer.to_ms);
  }
}

function reachText({ oldest_ms, to_ms, storage }: HistorySpan, now_ms: number): string {
  const kept = duration(storage.reach_ms);
  const where = storage.on_disk
    ? trans.__('It is kept on disk for %1.', kept)
    : trans.__('It is kept in memory for %1.', kept);
  return oldest_ms >= to_ms
    ? trans.__('Nothing is recorded yet.')
    : `${trans.__('The history begins at %1.', since(oldest_ms, now_ms))} ${where}`;
}
