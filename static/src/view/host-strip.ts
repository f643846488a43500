/** The machine around the GPUs, in one strip. */

import { h, setAttribute, setStyle } from '../lib/dom';
import { bytesPerSecond, memoryNumber, memorySize, memoryTotal, percent } from '../lib/format';
import { trans } from '../lib/translation';
import { valueOf } from '../model/reading';
import type { HostSample, RamSample } from '../wire';
import { ReadingValue, type Freshness } from './value';

export class HostStrip {
  readonly element: HTMLElement;
  private readonly cpu = new ReadingValue('host.cpu.busy_percent');
  private readonly cpuMeter = meter();
  private readonly ram = new ReadingValue('host.memory.used_bytes');
  private readonly ramMeter = meter();
  private readonly read = new ReadingValue('host.disk.read_bytes_per_second', 'gpumon-rate');
  private readonly written = new ReadingValue('host.disk.written_bytes_per_second', 'gpumon-rate');
  private readonly received = new ReadingValue(
    'host.network.received_bytes_per_second',
    'gpumon-rate',
  );
  private readonly sent = new ReadingValue('host.network.sent_bytes_per_second', 'gpumon-rate');

  constructor() {
    const list = h(
      'dl',
      { class: 'gpumon-host', 'data-testid': 'gpumon-host' },
      item(trans.__('CPU'), this.cpuMeter.element, this.cpu.element),
      item(trans.__('RAM'), this.ramMeter.element, this.ram.element),
      item(
        trans.__('Disk'),
        direction(trans.__('read'), this.read),
        direction(trans.__('write'), this.written),
      ),
      item(
        trans.__('Net'),
        direction(trans.__('RX'), this.received),
        direction(trans.__('TX'), this.sent),
      ),
    );
    this.element = h(
      'section',
      { class: 'gpumon-section', 'aria-label': trans.__('Machine') },
      h('h2', {}, trans.__('Machine')),
      list,
    );
  }

  update(host: HostSample, freshness: Freshness): void {
    const { cpu, memory, swap, disk, network } = host;
    const count = valueOf(cpu.count);
    const cores = count === null ? '' : trans._n('of %1 core', 'of %1 cores', count);
    this.cpu.update(cpu.busy_percent, percent, freshness, cores);
    this.cpuMeter.set((valueOf(cpu.busy_percent) ?? 0) / 100);
    const total = valueOf(memory.total_bytes);
    const used = valueOf(memory.used_bytes);
    this.ram.update(memory.used_bytes, memoryNumber, freshness, memoryTotal(total));
    this.ramMeter.set(total === null || used === null || total === 0 ? 0 : used / total);
    setAttribute(this.ramMeter.element, 'title', describeSwap(swap));
    this.read.update(disk.read_bytes_per_second, bytesPerSecond, freshness);
    this.written.update(disk.written_bytes_per_second, bytesPerSecond, freshness);
    this.received.update(network.received_bytes_per_second, bytesPerSecond, freshness);
    this.sent.update(network.sent_bytes_per_second, bytesPerSecond, freshness);
  }
}

function describeSwap(swap: RamSample): string | null {
  const total = valueOf(swap.total_bytes);
  const used = valueOf(swap.used_bytes);
  if (total === null || used === null) {
    return null;
  }
  return total === 0
    ? trans.__('no swap space')
    : trans.__('swap space: %1 of %2', memorySize(used), memorySize(total));
}

function item(label: string, ...content: HTMLElement[]): HTMLElement {
  return h('div', { class: 'gpumon-host-item' }, h('dt', {}, label), h('dd', {}, ...content));
}

function direction(label: string, value: ReadingValue): HTMLElement {
  return h(
    'span',
    { class: 'gpumon-direction' },
    h('span', { class: 'gpumon-direction-label' }, label),
    value.element,
  );
}

/** A bar for a share; the number beside it says the same in text. */
function meter(): { element: HTMLElement; set: (share: number) => void } {
  const fill = h('span', { class: 'gpumon-meter-fill' });
  const element = h('span', { class: 'gpumon-meter', 'aria-hidden': 'true' }, fill);
  return {
    element,
    set: (share) =>
      setStyle(fill, 'width', `${(Math.min(1, Math.max(0, share)) * 100).toFixed(1)}%`),
  };
}
