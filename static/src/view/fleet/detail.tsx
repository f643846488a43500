import type { ComponentChild } from 'preact';
import { useMemo } from 'preact/hooks';

import { count, DASH } from '../../lib/format';
import { trans } from '../../lib/translation';
import { columnsOf, modelOf, type Measures } from '../../model/fleet/columns';
import {
  conditionText,
  conditionTitle,
  levelOf,
  ownerText,
  stateText,
} from '../../model/fleet/describe';
import {
  MEASURED,
  metricLabel,
  missingText,
  readingText,
  shareOf,
  type Measured,
} from '../../model/fleet/metric';
import type { Answered } from '../../model/fleet/reader';
import { totalText } from '../../model/fleet/totals';
import type { Fleet } from '../../wire';
import { closedReason, Name, NodeLink, RowName, type Scene } from './scene';
import { Meter, State } from './table/cells';
import { Trend, TRENDS, valuesOf } from './trend';

/** How many owners or conditions are listed; the others are counted. */
const LISTED_MOST = 3;

export interface DetailProps extends Scene {
  /** The row under the pointer, or else the selected row; `null` for all rows that match. */
  row: number | null;
}

/** Everything that is known of a GPU or of a node; the sums of all if none is chosen. */
export function Detail(props: DetailProps): ComponentChild {
  const { columns, row, selected, answers, select } = props;
  const isSelected = row !== null && row === selected;
  return (
    <section
      class="gpumon-fleet-detail"
      data-testid="gpumon-fleet-detail"
      data-row={row ?? undefined}
      aria-label={trans.__('Details')}
    >
      {row === null ? <AllDetail {...props} /> : <RowDetail {...props} row={row} />}
      {isSelected && (
        <button
          type="button"
          class="gpumon-detail-close"
          aria-label={trans.__('Close')}
          title={trans.__('Clear the selection (Escape)')}
          onClick={() => select(null, false)}
        >
          ×
        </button>
      )}
      {isSelected && !columns.byGpu && <NodeGpus answered={answers.node} />}
      <Trends {...props} isOfNode={isSelected} />
    </section>
  );
}

function AllDetail({ columns, totals, matches }: Scene): ComponentChild {
  const [gpus = 0] = totals.gpus;
  const { users } = totals;
  return (
    <>
      <h2 class="gpumon-detail-name">
        {matches === null ? trans.__('All GPUs') : trans.__('All that match')}
      </h2>
      <p class="gpumon-detail-model">{trans._n('%1 GPU', '%2 GPUs', gpus, count(gpus))}</p>
      <p class="gpumon-detail-state" data-level="none">
        <State text={trans.__('Point at a GPU for its details')} level="none" />
      </p>
      <Readings
        measures={totals}
        row={0}
        textOf={(metric) => totalText(totals, metric)}
        missingOf={(metric) => missingText(columns, metric)}
        hasMeter={(metric) => metric !== 'temperature'}
      />
      <HeldBy>
        <li>
          {columns.fleet.missing.owners ?? trans._n('%1 user', '%2 users', users, count(users))}
        </li>
      </HeldBy>
    </>
  );
}

function RowDetail(scene: Scene & { row: number }): ComponentChild {
  const { columns, row } = scene;
  const { missing } = columns.fleet;
  const node = columns.node[row] ?? 0;
  const { text, reason, level } = stateText(columns, row);
  const model = modelOf(columns, row);
  const closed = closedReason(columns, node);
  const owners = [
    ...new Set(columns.ownersOf(row).flatMap((place) => columns.owner(place) ?? [])),
  ].map(ownerText);
  const listed = owners.length > LISTED_MOST ? owners.slice(0, LISTED_MOST - 1) : owners;
  const processes = columns.processes[row] ?? NaN;
  const unnamed =
    processes > 0
      ? trans._n('%1 process', '%2 processes', processes, count(processes))
      : processes === 0
        ? trans.__('nobody')
        : (missing.owners ?? missing.processes ?? DASH);
  // The state says already that a GPU is idle while it is held.
  const conditions = columns
    .conditionsOf(row)
    .filter(({ kind }) => kind !== 'held_idle' || columns.state[row] !== 'idle')
    .sort((a, b) => b.severity - a.severity)
    .slice(0, LISTED_MOST);
  return (
    <>
      <h2 class="gpumon-detail-name">
        <RowName columns={columns} row={row} />
      </h2>
      <p class="gpumon-detail-model" title={model ?? undefined}>
        {model ?? DASH}
      </p>
      <span class="gpumon-detail-open">
        {closed === null ? (
          <NodeLink scene={scene} node={node} class="gpumon-detail-link">
            {trans.__('Open node')}
          </NodeLink>
        ) : (
          trans.__('Cannot be opened: %1', closed)
        )}
      </span>
      <p class="gpumon-detail-state" data-level={level}>
        <State text={reason === '' ? text : `${text}: ${reason}`} level={level} />
      </p>
      <Readings
        measures={columns}
        row={row}
        textOf={(metric) => readingText(columns, metric, row)}
        missingOf={(metric) => missingText(columns, metric)}
        hasMeter={() => true}
      />
      <HeldBy>
        {owners.length === 0 && <li>{unnamed}</li>}
        {listed.map((owner) => (
          <li key={owner}>
            <Name text={owner} />
          </li>
        ))}
        {owners.length > listed.length && (
          <li>{trans.__('and %1 more', count(owners.length - listed.length))}</li>
        )}
      </HeldBy>
      <ul class="gpumon-detail-conditions">
        {conditions.map(({ kind, severity }) => (
          <li key={kind} data-level={levelOf(severity)} title={conditionTitle(kind) || undefined}>
            <State text={conditionText(kind)} level={levelOf(severity)} />
          </li>
        ))}
      </ul>
    </>
  );
}

function HeldBy({ children }: { children: ComponentChild }): ComponentChild {
  return (
    <dl class="gpumon-detail-rows">
      <div>
        <dt>{trans.__('Held by')}</dt>
        <dd>
          <ul>{children}</ul>
        </dd>
      </div>
    </dl>
  );
}

function Readings({
  measures,
  row,
  textOf,
  missingOf,
  hasMeter,
}: {
  measures: Measures;
  row: number;
  textOf: (metric: Measured) => string;
  missingOf: (metric: Measured) => string | undefined;
  hasMeter: (metric: Measured) => boolean;
}): ComponentChild {
  return (
    <dl class="gpumon-detail-rows">
      {MEASURED.map((metric) => {
        const text = textOf(metric);
        const title = text === DASH ? (missingOf(metric) ?? trans.__('no reading')) : undefined;
        return (
          <div key={metric} data-reading-of={metric} title={title}>
            <dt>{metricLabel(metric)}</dt>
            <dd>
              <Meter
                share={hasMeter(metric) ? shareOf(measures, metric, row) : NaN}
                color={metric}
              />
              <span class="gpumon-detail-value">{text}</span>
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

/** The GPUs of the selected node, if the fleet lists nodes only. */
function NodeGpus({ answered: { value, why } }: { answered: Answered<Fleet> }): ComponentChild {
  const columns = useMemo(() => (value === null ? null : columnsOf(value)), [value]);
  return columns === null ? (
    <p class="gpumon-empty">{why ?? trans.__('Loading')}</p>
  ) : (
    <ol class="gpumon-node-gpus">
      {Array.from(columns.rowsOf(0), (row) => (
        <li key={row}>
          <span>{columns.index[row]}</span>
          <Meter share={shareOf(columns, 'utilization', row)} color="utilization" />
          <span>{readingText(columns, 'utilization', row)}</span>
          <span>{readingText(columns, 'memory', row)}</span>
        </li>
      ))}
    </ol>
  );
}

/** The past of the selected node, or of all GPUs. */
function Trends({
  columns,
  row,
  answers,
  range,
  palette,
  isOfNode,
}: DetailProps & { isOfNode: boolean }): ComponentChild {
  const { value, why } = isOfNode ? answers.nodeHistory : answers.history;
  const kinds = [TRENDS.utilization, TRENDS.memory, TRENDS.power];
  const isEmpty = value !== null && kinds.every(({ id }) => valuesOf(value, id) === null);
  const note = why ?? (isEmpty ? trans.__('No history of this time.') : null);
  const name = columns.nodeNames[columns.node[row ?? -1] ?? -1] ?? '';
  return (
    <div class="gpumon-detail-trends">
      <p class="gpumon-detail-caption">
        {isOfNode ? trans.__('%1, last %2', name, range) : trans.__('All GPUs, last %1', range)}
      </p>
      {note === null ? (
        kinds.map((kind) => <Trend key={kind.id} kind={kind} history={value} palette={palette} />)
      ) : (
        <p class="gpumon-empty">{note}</p>
      )}
    </div>
  );
}
