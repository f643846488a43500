import { useState } from 'preact/hooks';

import { DASH, formatTimeOfDay } from '../../lib/format';
import { lazyTexts, trans } from '../../lib/translation';
import {
  selectAndSortByCost,
  executionName,
  type CellExecution,
  type CellOrder,
} from '../../model/cell-log';
import { describeCell } from '../../model/describe-cell';
import type { NotebookHost } from '../notebook';
import { useShortList } from '../sections';

const COLUMNS = lazyTexts((): readonly [CellOrder, string][] => [
  ['elapsed', trans.__('Time')],
  ['gpu', trans.__('GPU time')],
  ['peak', trans.__('Peak memory')],
  ['energy', trans.__('Energy')],
]);
/**
 * The number of displayed rows before the table is expanded. `MAX_ROWS` is the maximum number
 * afterwards.
 */
const INITIAL_ROWS = 3;
const MAX_ROWS = 20;

/** Shows the executions of notebook cells, the most expensive first. */
export function CellTable({
  executions,
  gpus,
  notebookOf,
  notebooks,
}: {
  executions: readonly CellExecution[];
  gpus: ReadonlySet<number>;
  /** Returns the name of the notebook that an execution belongs to. */
  notebookOf: (execution: CellExecution) => string;
  notebooks?: NotebookHost | undefined;
}) {
  const [order, setOrder] = useState<CellOrder>('gpu');
  const all = selectAndSortByCost(executions, order, gpus).slice(0, MAX_ROWS);
  const [shown, showAllButton] = useShortList(all, INITIAL_ROWS);
  if (all.length === 0) {
    return null;
  }
  return (
    <section class="gpumon-cell-costs" data-testid="gpumon-cells">
      <div class="gpumon-section-head">
        <h2>{trans.__('Cells by cost')}</h2>
        {showAllButton}
      </div>
      <table class="gpumon-processes gpumon-cells">
        <thead>
          <tr>
            <th scope="col">{trans.__('Started')}</th>
            <th scope="col">{trans.__('Cell')}</th>
            {COLUMNS().map(([id, title]) => (
              <th
                key={id}
                class="gpumon-col-number"
                scope="col"
                aria-sort={id === order ? 'descending' : undefined}
              >
                <button type="button" onClick={() => setOrder(id)}>
                  {title}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((execution) => {
            const { key, kernelId, code, running, cost } = execution;
            const notebook = notebookOf(execution);
            const parts = describeCell(cost);
            return (
              <tr key={key}>
                <td>{formatTimeOfDay(cost.started_ms)}</td>
                <td>
                  <button
                    type="button"
                    class="gpumon-process-link gpumon-process-name"
                    title={code}
                    // If the kernel no longer exists on this Jupyter server, its notebook cannot be
                    // opened from the table.
                    disabled={(notebooks?.pathOf(kernelId) ?? null) === null}
                    onClick={() => notebooks?.open(kernelId)}
                  >
                    {executionName(execution)}
                  </button>
                  <span class="gpumon-process-sub">
                    {running ? trans.__('%1, running', notebook) : notebook}
                  </span>
                </td>
                {COLUMNS().map(([id]) => {
                  const part = parts.find((one) => one.id === id);
                  return (
                    <td key={id} class="gpumon-col-number" title={part?.title}>
                      {part?.brief ?? DASH}
                    </td>
                  );
                })}
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
