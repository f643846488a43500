/**
 * The further readings of a GPU below its charts: the most useful readings, and on demand all
 * readings in groups.
 */

import { useState } from 'preact/hooks';

import { formatMemoryNumber, formatMemoryTotal, formatPercent } from '../lib/format';
import { addStyleSheetOnce } from '../lib/dom';
import { joinParts } from '../lib/text';
import { trans } from '../lib/translation';
import { detailGroups, type DetailRow } from '../model/details/groups';
import type { GpuState } from '../model/gpu';
import { migRows, type MigRow } from '../model/mig';
import { valueOf } from '../model/reading';
import { vendorWordsOf } from '../model/vendor-words';
import type { Reading } from '../wire';
import { SeverityIcon } from './alerts';
import style from './style/details.css?inline';
import { ReadingValue, type Freshness } from './value';

interface DetailsProps {
  gpu: GpuState;
  freshness: Freshness;
}

export function Details({ gpu, freshness }: DetailsProps) {
  const [isWhole, setWhole] = useState(false);
  addStyleSheetOnce(style);
  const { keys, groups, missing } = detailGroups(gpu);
  const waits = gpu.details === null && gpu.now?.health.state === 'ok';
  const notes = [
    missing.length === 0
      ? ''
      : trans.__('Not available with this board or driver: %1.', missing.join(', ')),
    waits ? trans.__('Errors, links and settings are refreshed every 10 seconds.') : '',
  ];
  const note = joinParts(notes, ' ');
  const list = (rows: readonly DetailRow[], className: string) => (
    <dl class={className}>
      {rows.map((row) => (
        <Detail key={row.detail.id} row={row} gpu={gpu} freshness={freshness} />
      ))}
    </dl>
  );
  return (
    <div class="gpumon-gpu-details">
      <MigList gpu={gpu} freshness={freshness} />
      {isWhole ? (
        <>
          <div class="gpumon-groups">
            {groups.map(({ title, rows, notes: paragraphs }) => (
              <section key={title} aria-label={title}>
                <h2 class="gpumon-group">{title}</h2>
                {list(rows, 'gpumon-details')}
                {paragraphs.map((text, i) => (
                  <p class="gpumon-missing" key={i}>
                    {text}
                  </p>
                ))}
              </section>
            ))}
          </div>
          {note !== '' && (
            <p class="gpumon-missing" data-testid="gpumon-missing">
              {note}
            </p>
          )}
        </>
      ) : (
        list(keys, 'gpumon-details gpumon-keys')
      )}
      <button
        type="button"
        class="gpumon-chip gpumon-more"
        aria-expanded={isWhole}
        onClick={() => setWhole(!isWhole)}
      >
        {isWhole ? trans.__('Fewer details') : trans.__('All details')}
      </button>
    </div>
  );
}

function Detail({
  row: { detail, label, reading },
  gpu,
  freshness,
}: DetailsProps & { row: DetailRow }) {
  const level = detail.level?.(gpu) ?? 'none';
  return (
    <div data-level={level}>
      <dt>{label}</dt>
      <dd>
        {level !== 'none' && <SeverityIcon />}
        <ReadingValue
          id={detail.id}
          reading={reading}
          format={(text) => text}
          freshness={freshness}
          rest={valueOf(reading) === null ? '' : (detail.rest?.(gpu) ?? '')}
        />
      </dd>
    </div>
  );
}

/** The memory and activity of a GPU's MIG devices or partitions. */
function MigList({ gpu, freshness }: DetailsProps) {
  const devices = migRows(gpu);
  const { partitions } = vendorWordsOf(gpu);
  return (
    devices.length > 0 && (
      <section aria-label={partitions}>
        <h2 class="gpumon-group">{partitions}</h2>
        <ul class="gpumon-mig">
          {devices.map((device) => (
            <MigDevice key={device.uuid} device={device} freshness={freshness} />
          ))}
        </ul>
      </section>
    )
  );
}

function MigDevice({ device, freshness }: { device: MigRow; freshness: Freshness }) {
  const activity = (label: string, id: string, reading: Reading<number>) => (
    <span class="gpumon-mig-part">
      <span class="gpumon-direction-label">{`${label} `}</span>
      <ReadingValue id={id} reading={reading} format={formatPercent} freshness={freshness} />
    </span>
  );
  return (
    <li data-mig-uuid={device.uuid} title={device.uuid}>
      <span class="gpumon-mig-name">{device.name}</span>
      <span class="gpumon-mig-instance">{device.instance}</span>
      <span class="gpumon-mig-bar" aria-hidden="true">
        <span class="gpumon-mig-fill" style={{ width: `${(device.share * 100).toFixed(1)}%` }} />
      </span>
      <ReadingValue
        id="mig.memory.used_bytes"
        reading={device.used_bytes}
        format={formatMemoryNumber}
        freshness={freshness}
        rest={formatMemoryTotal(device.total_bytes)}
      />
      {activity('SM', 'mig.activity.sm_percent', device.sm_percent)}
      {activity(trans.__('tensor'), 'mig.activity.tensor_percent', device.tensor_percent)}
    </li>
  );
}
