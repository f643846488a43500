import { useMemo } from 'preact/hooks';

import { formatCount, DASH } from '../../lib/format';
import { trans } from '../../lib/translation';
import { columnsOf, modelOf } from '../../model/fleet/columns';
import {
  conditionName,
  conditionHoverText,
  levelOf,
  ownerText,
  stateText,
} from '../../model/fleet/describe';
import {
  NUMERIC_METRICS,
  metricLabel,
  explainMissingReading,
  readingText,
  readingShare,
} from '../../model/fleet/metric';
import { totalText } from '../../model/fleet/totals';
import { Meter } from '../value';
import { explainUnopenableNode, ShortenedName, NodeLink, RowName, type Scene } from './scene';
import { State } from './table';
import { Trend, TRENDS, valuesOf } from './trend';

/** The maximum number of listed owners or conditions. Further owners are counted. */
const MAX_LISTED = 3;

/** All readings of a GPU or a node, or the sums of all matching rows if none is selected. */
export function Detail(scene: Scene) {
  const { columns, totals, matches, selected, pointed, select } = scene;
  const row = pointed ?? selected;
  const isSelected = row !== null && row === selected;
  const [gpus = 0] = totals.gpus;
  const model = row === null ? null : modelOf(columns, row);
  const { text, reason, level } =
    row === null
      ? { text: trans.__('Point at a GPU for its details'), reason: '', level: 'none' }
      : stateText(columns, row);
  // If the state already shows that a held GPU is idle, the condition for this is omitted.
  const conditions = columns
    .conditionsOf(row ?? -1)
    .filter(({ kind }) => kind !== 'held_idle' || level !== 'notice')
    .sort((a, b) => b.severity - a.severity)
    .slice(0, MAX_LISTED);
  return (
    <section
      class="gpumon-fleet-detail"
      data-testid="gpumon-fleet-detail"
      data-row={row ?? undefined}
      aria-label={trans.__('Details')}
    >
      <h2 class="gpumon-detail-name">
        {row !== null ? (
          <RowName columns={columns} row={row} />
        ) : matches === null ? (
          trans.__('All GPUs')
        ) : (
          trans.__('All matching GPUs')
        )}
      </h2>
      <p class="gpumon-detail-model">
        {row === null ? trans._n('%1 GPU', '%2 GPUs', gpus, formatCount(gpus)) : (model ?? DASH)}
      </p>
      {row !== null && <NodeLinkOrReason {...scene} node={columns.node[row] ?? 0} />}
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
      <p class="gpumon-detail-state" data-level={level}>
        <State text={reason === '' ? text : `${text}: ${reason}`} level={level} />
      </p>
      <dl class="gpumon-detail-rows">
        {NUMERIC_METRICS.map((metric) => {
          const value =
            row === null
              ? totalText(totals, metric, { isShort: false })
              : readingText(columns, metric, row);
          const share =
            row !== null
              ? readingShare(columns, metric, row)
              : metric === 'temperature'
                ? NaN
                : readingShare(totals, metric, 0);
          const why = explainMissingReading(columns, metric) ?? trans.__('no reading');
          return (
            <div key={metric} title={value === DASH ? why : undefined}>
              <dt>{metricLabel(metric)}</dt>
              <dd>
                <Meter share={share} color={metric} />
                <span class="gpumon-detail-value">{value}</span>
              </dd>
            </div>
          );
        })}
        <div>
          <dt>{trans.__('Held by')}</dt>
          <dd>
            <ul>
              {listOwnerTexts(scene, row).map((holder) => (
                <li key={holder}>
                  <ShortenedName text={holder} />
                </li>
              ))}
            </ul>
          </dd>
        </div>
      </dl>
      <ul class="gpumon-detail-conditions">
        {conditions.map(({ kind, severity }) => (
          <li key={kind} data-level={levelOf(severity)} title={conditionHoverText(kind)}>
            <State text={conditionName(kind)} level={levelOf(severity)} />
          </li>
        ))}
      </ul>
      {isSelected && !columns.byGpu && <NodeGpus {...scene} />}
      <Trends {...scene} node={isSelected ? (columns.node[row] ?? 0) : null} />
    </section>
  );
}

/** The link to a node, or the reason why it cannot be opened. */
function NodeLinkOrReason({ node, ...scene }: Scene & { node: number }) {
  const closed = explainUnopenableNode(scene.columns, node);
  return (
    <span class="gpumon-detail-open" data-closed={closed === null ? undefined : ''}>
      {closed === null ? (
        <NodeLink scene={scene} node={node} class="gpumon-chip">
          {trans.__('Open node')}
        </NodeLink>
      ) : (
        trans.__('Cannot be opened: %1', closed)
      )}
    </span>
  );
}

/** Returns the owners of a row, or the number of users of all matching rows. */
function listOwnerTexts({ columns, totals }: Scene, row: number | null): string[] {
  const { missing } = columns.fleet;
  if (row === null) {
    const { users } = totals;
    return [missing.owners ?? trans._n('%1 user', '%2 users', users, formatCount(users))];
  }
  const owners = columns.ownersOf(row).flatMap((place) => columns.owner(place) ?? []);
  const texts = [...new Set(owners.map(ownerText))];
  const processes = columns.processes[row] ?? NaN;
  if (texts.length === 0) {
    return [
      processes > 0
        ? trans._n('%1 process', '%2 processes', processes, formatCount(processes))
        : processes === 0
          ? trans.__('nobody')
          : (missing.owners ?? missing.processes ?? DASH),
    ];
  }
  const more = texts.length - MAX_LISTED + 1;
  return more > 1
    ? [...texts.slice(0, MAX_LISTED - 1), trans.__('and %1 more', formatCount(more))]
    : texts;
}

/** The GPUs of the selected node, if the fleet only lists nodes. */
function NodeGpus({ answers }: Scene) {
  const { value, why } = answers.node;
  const columns = useMemo(() => (value === null ? null : columnsOf(value)), [value]);
  return columns === null ? (
    <p class="gpumon-empty">{why ?? trans.__('Loading')}</p>
  ) : (
    <ol class="gpumon-node-gpus">
      {Array.from(columns.rowsOf(0), (row) => (
        <li key={row}>
          <span>{columns.index[row]}</span>
          <Meter share={readingShare(columns, 'utilization', row)} color="utilization" />
          <span>{readingText(columns, 'utilization', row)}</span>
          <span>{readingText(columns, 'memory', row)}</span>
        </li>
      ))}
    </ol>
  );
}

/** The history of the selected node, or of all GPUs. */
function Trends({ node, ...scene }: Scene & { node: number | null }) {
  const { columns, answers, matches, range } = scene;
  const { value, why } = node === null ? answers.history : answers.nodeHistory;
  const kinds = ['utilization', 'memory', 'power'] as const;
  const isEmpty =
    value !== null && kinds.every((kind) => valuesOf(value, TRENDS[kind].id) === null);
  const note = why ?? (isEmpty ? trans.__('No history is available for this time range.') : null);
  return (
    <div class="gpumon-detail-trends">
      <p class="gpumon-detail-caption">
        {node !== null
          ? columns.byGpu
            ? trans.__('All GPUs of %1, last %2', columns.nodeNames[node], range)
            : trans.__('%1, last %2', columns.nodeNames[node], range)
          : matches === null
            ? trans.__('All GPUs, last %1', range)
            : trans.__('All GPUs, unfiltered, last %1', range)}
      </p>
      {note === null ? (
        kinds.map((kind) => <Trend key={kind} kind={kind} scene={scene} history={value} />)
      ) : (
        <p class="gpumon-empty">{note}</p>
      )}
    </div>
  );
}
