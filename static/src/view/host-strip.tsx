import type { ComponentChild } from 'preact';

import { bytesPerSecond, memoryNumber, memorySize, memoryTotal, percent } from '../lib/format';
import { trans } from '../lib/translation';
import { valueOf } from '../model/reading';
import type { HostSample, RamSample, Reading } from '../wire';
import { ReadingValue, type Freshness } from './value';

export interface HostStripProps {
  host: HostSample;
  freshness: Freshness;
}

/** The machine around the GPUs. */
export function HostStrip({
  host: { cpu, memory, swap, disk, network },
  freshness,
}: HostStripProps): ComponentChild {
  const count = valueOf(cpu.count);
  const total = valueOf(memory.total_bytes);
  const used = valueOf(memory.used_bytes);
  const rate = (label: string, id: string, reading: Reading<number>): ComponentChild => (
    <span class="gpumon-direction">
      <span class="gpumon-direction-label">{label}</span>
      <ReadingValue
        id={`host.${id}_bytes_per_second`}
        class="gpumon-rate"
        format={bytesPerSecond}
        {...{ reading, freshness }}
      />
    </span>
  );
  const items: [label: string, content: ComponentChild][] = [
    [
      trans.__('CPU'),
      <>
        <Meter share={(valueOf(cpu.busy_percent) ?? 0) / 100} />
        <ReadingValue
          id="host.cpu.busy_percent"
          reading={cpu.busy_percent}
          format={percent}
          freshness={freshness}
          rest={count === null ? '' : trans._n('of %1 core', 'of %1 cores', count)}
        />
      </>,
    ],
    [
      trans.__('RAM'),
      <>
        <Meter share={total === null ? 0 : (used ?? 0) / total} title={describeSwap(swap)} />
        <ReadingValue
          id="host.memory.used_bytes"
          reading={memory.used_bytes}
          format={memoryNumber}
          freshness={freshness}
          rest={memoryTotal(total)}
        />
      </>,
    ],
    [
      trans.__('Disk'),
      <>
        {rate(trans.__('read'), 'disk.read', disk.read_bytes_per_second)}
        {rate(trans.__('write'), 'disk.written', disk.written_bytes_per_second)}
      </>,
    ],
    [
      trans.__('Net'),
      <>
        {rate(trans.__('RX'), 'network.received', network.received_bytes_per_second)}
        {rate(trans.__('TX'), 'network.sent', network.sent_bytes_per_second)}
      </>,
    ],
  ];
  return (
    <section class="gpumon-section" aria-label={trans.__('Machine')}>
      <h2>{trans.__('Machine')}</h2>
      <dl class="gpumon-host" data-testid="gpumon-host">
        {items.map(([label, content], place) => (
          <div class="gpumon-host-item" key={place}>
            <dt>{label}</dt>
            <dd>{content}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function describeSwap(swap: RamSample): string | undefined {
  const total = valueOf(swap.total_bytes);
  const used = valueOf(swap.used_bytes);
  if (total === null || used === null) {
    return undefined;
  }
  return total === 0
    ? trans.__('no swap space')
    : trans.__('swap space: %1 of %2', memorySize(used), memorySize(total));
}

/** A bar for a share; the number next to it is the same as text. */
function Meter({ share, title }: { share: number; title?: string | undefined }): ComponentChild {
  const width = `${(Math.min(1, share) * 100).toFixed(1)}%`;
  return (
    <span class="gpumon-meter" aria-hidden="true" title={title}>
      <span class="gpumon-meter-fill" style={{ width }} />
    </span>
  );
}
