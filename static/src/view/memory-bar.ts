/** A GPU's memory as a bar, divided by who holds it. */

import { h, KeyedRows, setAttribute, setStyle, setText } from '../lib/dom';
import { memorySize } from '../lib/format';
import { joined } from '../lib/text';
import { trans } from '../lib/translation';
import { describeUnified, memorySegments, memorySentence, type Segment } from '../model/memory';
import type { HolderRow } from '../model/holders';
import type { GpuSample } from '../wire';
import { setPaint } from './palette';

/** A name needs about this share of a narrow bar, and this of a short one. */
const LABEL_SHARE = 0.22;
const SHORT_LABEL_SHARE = 0.45;

export class MemoryBar {
  readonly element = h('div', {
    class: 'gpumon-bar',
    role: 'img',
    'data-testid': 'gpumon-memory-bar',
  });
  private readonly parts = new KeyedRows(
    this.element,
    ({ key }: Segment) => key,
    ({ key }) => {
      const label = h('span', { class: 'gpumon-bar-label' });
      return { key, element: h('div', { class: 'gpumon-bar-part' }, label), label };
    },
  );

  update(gpu: GpuSample | null, rows: readonly HolderRow[], short: boolean): void {
    const segments = gpu === null ? [] : memorySegments(gpu, rows);
    const unified = describeUnified(gpu);
    const sentence = memorySentence(segments) || trans.__('unknown');
    setAttribute(
      this.element,
      'aria-label',
      unified === '' ? trans.__('Memory: %1', sentence) : joined([unified, sentence], '. '),
    );
    setAttribute(this.element, 'title', unified || null);
    const least = short ? SHORT_LABEL_SHARE : LABEL_SHARE;
    this.parts.update(segments, ({ element, label }, segment) => {
      setPaint(element, segment.paint);
      const size = `${segment.label}: ${memorySize(segment.bytes)}`;
      setAttribute(element, 'title', joined([size, unified], '\n'));
      setStyle(element, 'width', `${(segment.share * 100).toFixed(2)}%`);
      const named =
        typeof segment.paint === 'number' && segment.key !== 'other' && segment.share >= least;
      setText(label, named ? segment.label : '');
    });
  }

  /** Lifts out what the holder with this key has; `null` lifts nothing. */
  highlight(key: string | null): void {
    setAttribute(
      this.element,
      'data-highlighting',
      key !== null && this.parts.get(key) ? '' : null,
    );
    for (const part of this.parts.all) {
      setAttribute(part.element, 'data-highlighted', part.key === key ? '' : null);
    }
  }
}
