/** The executions of notebooks' cells, the most expensive first. */

import { button, h, KeyedRows, setAttribute, setShown, setText } from '../../lib/dom';
import { DASH, timeOfDay } from '../../lib/format';
import { trans } from '../../lib/translation';
import { byCost, executionName, type CellOrder, type CellExecution } from '../../model/cell-log';
import { describeCell } from '../../model/describe-cell';
import type { NotebookHost } from '../notebook-host';

const COLUMNS: readonly { id: CellOrder; title: () => string }[] = [
  { id: 'elapsed', title: () => trans.__('Time') },
  { id: 'gpu', title: () => trans.__('GPU time') },
  { id: 'peak', title: () => trans.__('Peak memory') },
  { id: 'energy', title: () => trans.__('Energy') },
];
/** Nobody reads further. */
const MOST = 20;

export class CellTable {
  readonly element: HTMLElement;
  private readonly body = h('tbody', {});
  private readonly rows = new KeyedRows(
    this.body,
    ({ key }: CellExecution) => key,
    ({ kernelId }) => new Row(kernelId, this.notebooks),
  );
  private readonly heads: { id: CellOrder; element: HTMLElement }[];
  private order: CellOrder = 'gpu';

  constructor(
    invalidate: () => void,
    private readonly notebooks?: NotebookHost,
  ) {
    this.heads = COLUMNS.map(({ id, title }) => {
      const sort = (): void => {
        this.order = id;
        invalidate();
      };
      return {
        id,
        element: h('th', { class: 'gpumon-col-number', scope: 'col' }, button({}, sort, title())),
      };
    });
    const head = h(
      'tr',
      {},
      h('th', { scope: 'col' }, trans.__('Started')),
      h('th', { scope: 'col' }, trans.__('Cell')),
      ...this.heads.map(({ element }) => element),
    );
    this.element = h(
      'section',
      { 'data-testid': 'gpumon-cells' },
      h('h2', {}, trans.__('Cells by cost')),
      h('table', { class: 'gpumon-processes gpumon-cells' }, h('thead', {}, head), this.body),
    );
  }

  /** `notebookOf` returns the name of an execution's notebook. */
  update(
    executions: readonly CellExecution[],
    gpus: ReadonlySet<number>,
    notebookOf: (execution: CellExecution) => string,
  ): void {
    const shown = byCost(executions, this.order, gpus).slice(0, MOST);
    setShown(this.element, shown.length > 0);
    for (const { id, element } of this.heads) {
      setAttribute(element, 'aria-sort', id === this.order ? 'descending' : null);
    }
    this.rows.update(shown, (row, execution) => row.update(execution, notebookOf(execution)));
  }
}

class Row {
  readonly element: HTMLElement;
  private readonly started = h('td', { class: 'gpumon-cell-started' });
  private readonly name = button({ class: 'gpumon-process-link gpumon-process-name' }, () =>
    this.notebooks?.open(this.kernelId),
  );
  private readonly notebook = h('span', { class: 'gpumon-process-sub' });
  private readonly numbers = COLUMNS.map(({ id }) => ({
    id,
    element: h('td', { class: 'gpumon-col-number' }),
  }));

  constructor(
    private readonly kernelId: string,
    private readonly notebooks?: NotebookHost,
  ) {
    this.element = h(
      'tr',
      {},
      this.started,
      h('td', {}, this.name, this.notebook),
      ...this.numbers.map(({ element }) => element),
    );
  }

  update(execution: CellExecution, notebook: string): void {
    setText(this.started, timeOfDay(execution.cost.started_ms));
    setText(this.name, executionName(execution));
    setAttribute(this.name, 'title', execution.code);
    // After a restart of its kernel the notebook cannot be opened from here.
    this.name.disabled = (this.notebooks?.pathOf(this.kernelId) ?? null) === null;
    setText(this.notebook, execution.running ? trans.__('%1, running', notebook) : notebook);
    const parts = describeCell(execution.cost);
    for (const { id, element } of this.numbers) {
      const part = parts.find((one) => one.id === id);
      setText(element, part?.brief ?? DASH);
      setAttribute(element, 'title', part?.title ?? null);
    }
  }
}
