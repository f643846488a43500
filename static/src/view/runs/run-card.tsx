import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { formatDuration, formatTimeWithDateUnlessToday, formatTimeOfDay } from '../../lib/format';
import { joinParts, plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { GpuState } from '../../model/gpu';
import { vendorSpecificTitle } from '../../model/vendor-words';
import { limitOf, METRICS } from '../../model/metric';
import {
  describeStep,
  describeTimeLeft,
  deviceNames,
  RUN_LEVEL,
  RUN_STATUS,
  RUN_TOPICS,
  completedShare,
  remainingTime,
  titleOf,
} from '../../model/describe-run';
import type { RunHistory } from '../../model/run-results';
import { formatValue } from '../../model/unit';
import type { RunItem, RunState } from '../../wire';
import { SeverityIcon } from '../alerts';
import { ReadingValue, type Freshness } from '../value';
import { ResultTable } from './result-table';

/** The metrics that are displayed for a GPU while it runs a benchmark. */
const LIVE_METRICS = METRICS.filter(({ id }) =>
  ['utilization.gpu_percent', 'memory.used_bytes', 'power.draw_watts'].includes(id),
);
const MAX_MESSAGE_LENGTH = 2000;

interface RunCardProps {
  state: RunState;
  history: RunHistory;
  gpus: readonly GpuState[];
  freshness: Freshness;
  isNewest: boolean;
  /** Whether the run is selected for comparison and export. */
  isChosen: boolean;
  onChoose: (isChosen: boolean) => void;
  onCancel: () => void;
}

/** A run with its progress, the readings of its GPU, and its results. */
export function RunCard(props: RunCardProps) {
  const { state, history, freshness, isNewest, isChosen, onChoose } = props;
  const { run, status, started_ms, ended_ms, error } = state;
  const isRunning = status === 'running';
  const [isOpened, setOpened] = useState<boolean | null>(null);
  const isOpen = isOpened ?? (isRunning || isNewest);
  const card = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isRunning) {
      card.current?.scrollIntoView({ block: 'nearest' });
    }
  }, []);
  const items = useMemo(
    () => isOpen && <Items {...{ state, history }} />,
    [isOpen, history.version],
  );
  return (
    <div class="gpumon-run" ref={card} data-run={run} data-status={status}>
      <input
        type="checkbox"
        aria-label={trans.__('Select %1, %2', titleOf(state), formatTimeOfDay(started_ms))}
        checked={isChosen}
        onChange={({ currentTarget }) => onChoose(currentTarget.checked)}
      />
      <details open={isOpen}>
        <summary
          data-level={RUN_LEVEL[status]}
          onClick={(event) => {
            event.preventDefault();
            setOpened(!isOpen);
          }}
        >
          <SeverityIcon />
          <span class="gpumon-run-title">{titleOf(state)}</span>
          <span class="gpumon-run-status">
            {joinParts([
              deviceNames(state),
              RUN_STATUS()[status],
              formatTimeWithDateUnlessToday(started_ms, freshness.now_ms),
              formatDuration((ended_ms ?? freshness.now_ms) - started_ms),
            ])}
          </span>
        </summary>
        {isRunning && <Progress {...props} />}
        {error !== null && <p class="gpumon-error">{plainText(error, MAX_MESSAGE_LENGTH)}</p>}
        {items}
      </details>
    </div>
  );
}

function Progress({ state, gpus, freshness, onCancel }: RunCardProps) {
  const left_ms = remainingTime(state, freshness.now_ms);
  const gpu = gpus.find(({ index }) => state.devices.some((device) => device.index === index));
  return (
    <div class="gpumon-run-now">
      <div class="gpumon-run-line">
        <span class="gpumon-run-step">{describeStep(state)}</span>
        <span class="gpumon-run-text">{plainText(state.text)}</span>
      </div>
      <progress
        max={1}
        value={completedShare(state)?.toFixed(3)}
        aria-label={trans.__('Progress')}
      />
      <span class="gpumon-run-left">{left_ms === null ? '' : describeTimeLeft(left_ms)}</span>
      {state.own ? (
        <button type="button" class="gpumon-chip" onClick={onCancel}>
          {trans.__('Cancel')}
        </button>
      ) : (
        <span class="gpumon-empty">
          {trans.__('To stop this run, press Ctrl-C in its terminal.')}
        </span>
      )}
      {gpu !== undefined && (
        <dl class="gpumon-run-live">
          {LIVE_METRICS.map((metric) => {
            const limit = limitOf(metric, gpu.now);
            return (
              <div key={metric.id}>
                <dt>{vendorSpecificTitle(metric.id, metric.label(), [gpu])}</dt>
                <dd>
                  <ReadingValue
                    id={metric.id}
                    reading={gpu.now && metric.read(gpu.now)}
                    format={(value) => formatValue(metric.unit, value, limit).main}
                    rest={formatValue(metric.unit, null, limit).rest}
                    freshness={freshness}
                  />
                </dd>
              </div>
            );
          })}
        </dl>
      )}
    </div>
  );
}

/** The results of a run, then its messages and failures. */
function Items({ state, history }: Pick<RunCardProps, 'state' | 'history'>) {
  const rows = history
    .resultsOf(state.run)
    .map((result) => ({ result, last: history.findPrevious(state, result) }));
  return (
    <>
      {rows.length > 0 && (
        <div class="gpumon-run-results">
          <ResultTable rows={rows} />
        </div>
      )}
      <ol class="gpumon-run-items">
        {history
          .itemsOf(state.run)
          .filter((item) => item.item !== 'result')
          .map((item, place) => (
            <Message key={place} item={item} />
          ))}
      </ol>
    </>
  );
}

function Message({ item }: { item: Exclude<RunItem, { item: 'result' }> }) {
  const isFailure = item.item === 'failed';
  const name = isFailure ? plainText(item.id) : RUN_TOPICS()[item.topic];
  return (
    <li data-level={isFailure ? 'critical' : 'none'}>
      <SeverityIcon />
      <span class="gpumon-run-parts">
        {name !== '' && <b>{name}</b>}
        <span>{plainText(isFailure ? item.error : item.text, MAX_MESSAGE_LENGTH)}</span>
      </span>
    </li>
  );
}
