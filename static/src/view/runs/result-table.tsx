import type { ComponentChildren } from 'preact';

import { DASH } from '../../lib/format';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import {
  formatChange,
  COLUMNS,
  describeResult,
  rateOf,
  rateText,
  type Column,
  type ResultCell,
} from '../../model/describe-run';
import { valueOf } from '../../model/reading';
import type { ComparedRow } from '../../model/run-results';
import type { RunResult } from '../../wire';
import { SeverityIcon } from '../alerts';

/** The results of a run, compared with the theoretical peak and the last result on this server. */
export function ResultTable({
  rows,
}: {
  rows: readonly { result: RunResult; last: RunResult | null }[];
}) {
  const columns = Object.entries(COLUMNS()) as [Column, string][];
  const withDevice = new Set(rows.map(({ result }) => result.device)).size > 1;
  return (
    <Table
      head={columns.map(([column, name]) => (
        <th key={column} scope="col" data-column={column}>
          {name}
        </th>
      ))}
    >
      {rows.map(({ result, last }, place) => {
        const parts = describeResult(result, last);
        return (
          <tr key={place}>
            {columns.map(([column]) =>
              column === 'workload' ? (
                <Workload key={column} result={result} withDevice={withDevice} />
              ) : (
                <Cell key={column} column={column} part={parts[column]} result={result} />
              ),
            )}
          </tr>
        );
      })}
    </Table>
  );
}

/** The rates of two runs and their changes. */
export function ComparisonTable({
  rows,
  names,
}: {
  rows: readonly ComparedRow[];
  names: readonly [before: string, after: string];
}) {
  return (
    <Table
      head={[trans.__('Workload'), ...names, trans.__('Change')].map((name, place) => (
        <th key={place} scope="col">
          {name}
        </th>
      ))}
    >
      {rows.map(({ before, after, either }, place) => {
        const [from, to] = [before && rateOf(before), after && rateOf(after)];
        return (
          <tr key={place}>
            <Workload result={either} withDevice={false} />
            <td>{before === null || from === null ? DASH : rateText(before, from)}</td>
            <td>{after === null || to === null ? DASH : rateText(after, to)}</td>
            <td data-column="rate">
              {from === null || to === null ? DASH : formatChange(to, from)}
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

/** A table that scrolls horizontally if it is too wide, also by keyboard. */
function Table({ head, children }: { head: ComponentChildren; children: ComponentChildren }) {
  return (
    <div class="gpumon-run-scroll" tabIndex={0} role="group" aria-label={trans.__('Results')}>
      <table class="gpumon-run-table">
        <thead>
          <tr>{head}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** A workload with its data type. The device is added if the table has several devices. */
function Workload({
  result: { id, dtype, device },
  withDevice,
}: {
  result: RunResult;
  withDevice: boolean;
}) {
  const more = plainText([dtype, withDevice ? device : ''].filter(Boolean).join(', '));
  return (
    <th scope="row">
      {plainText(id)}
      <span class="gpumon-run-text"> {more}</span>
    </th>
  );
}

function Cell({
  column,
  part: { text, title, absent },
  result,
}: {
  column: Column;
  part: ResultCell;
  result: RunResult;
}) {
  const share = column === 'share' ? valueOf(result.share) : null;
  const level = column !== 'result' ? undefined : result.verified ? 'done' : 'critical';
  return (
    <td data-column={column} title={title} data-level={level}>
      {level !== undefined && <SeverityIcon />}
      {share !== null && (
        <span
          class="gpumon-run-share"
          aria-hidden="true"
          style={{ '--_share': String(Math.min(1, share)) }}
        />
      )}
      {text}
      {absent && <span class="gpumon-visually-hidden"> ({title})</span>}
    </td>
  );
}
