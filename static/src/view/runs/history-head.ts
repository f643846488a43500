/** The head of the list of runs: the comparison of two that are chosen, and the export of those or of all. */

import { button, h, setShown, setText } from '../../lib/dom';
import { download } from '../../lib/download';
import { DASH, since } from '../../lib/format';
import { joined } from '../../lib/text';
import { trans } from '../../lib/translation';
import { change, rateOf, rateText } from '../../model/describe-result';
import { placeOf } from '../../model/describe-run';
import { comparison, type ComparedRow } from '../../model/run-comparison';
import { toCsv, toJson } from '../../model/run-export';
import type { RunHistory } from '../../model/run-history';
import type { RunResult, RunState } from '../../wire';
import { scrolled, workloadCell } from './result-table';

export class HistoryHead {
  readonly element: HTMLElement;
  private readonly hint = h('span', { class: 'gpumon-run-text' });
  private readonly csv = this.exportButton('CSV', 'text/csv', toCsv);
  private readonly json = this.exportButton('JSON', 'application/json', toJson);
  private readonly compared = h('div', { class: 'gpumon-run-compared' });
  private chosen: readonly RunState[] = [];
  private shown = '';

  constructor(private readonly history: RunHistory) {
    this.element = h(
      'div',
      {},
      h(
        'div',
        { class: 'gpumon-run-head' },
        h('h3', {}, trans.__('Results')),
        this.hint,
        this.csv,
        this.json,
      ),
      this.compared,
    );
  }

  update(chosen: readonly RunState[], now_ms: number): void {
    const { history } = this;
    this.chosen = chosen;
    setShown(this.element, history.runs.length > 0);
    setText(
      this.hint,
      chosen.length === 2
        ? trans.__('Two runs compared')
        : trans.__('Choose two runs to compare them'),
    );
    const hasResults = this.exported.some(({ run }) => history.resultsOf(run).length > 0);
    this.csv.disabled = !hasResults;
    this.json.disabled = !hasResults;
    const key = joined([String(history.version), ...chosen.map(({ run }) => run)]);
    if (key !== this.shown) {
      this.shown = key;
      const [after, before] = chosen;
      const both = chosen.length === 2 && after !== undefined && before !== undefined;
      this.compared.replaceChildren(...(both ? [this.table(before, after, now_ms)] : []));
    }
  }

  /** Those that are chosen, or all. */
  private get exported(): readonly RunState[] {
    return this.chosen.length > 0 ? this.chosen : this.history.runs;
  }

  private exportButton(
    name: string,
    type: string,
    write: (runs: ReturnType<RunHistory['detailsOf']>[]) => string,
  ): HTMLButtonElement {
    const title = trans.__(
      'Save the chosen runs with their results, or all where none is chosen, as %1',
      name,
    );
    const save = (): void => {
      const runs = this.exported.map((state) => this.history.detailsOf(state));
      download(new Blob([write(runs)], { type }), `gpumon-benchmarks.${name.toLowerCase()}`);
    };
    return button({ class: 'gpumon-chip', title }, save, name);
  }

  private table(before: RunState, after: RunState, now_ms: number): HTMLElement {
    const rows = comparison(this.history.resultsOf(before.run), this.history.resultsOf(after.run));
    const when = (state: RunState): string =>
      joined([placeOf(state), since(state.started_ms, now_ms)]);
    const names = [trans.__('Workload'), when(before), when(after), trans.__('Change')];
    const head = h('tr', {}, ...names.map((name) => h('th', { scope: 'col' }, name)));
    const body = h('tbody', {}, ...rows.map(comparedRow));
    return scrolled(h('table', { class: 'gpumon-run-table' }, h('thead', {}, head), body));
  }
}

function comparedRow({ before, after, either }: ComparedRow): HTMLElement {
  const [from, to] = [before && rateOf(before), after && rateOf(after)];
  const text = (result: RunResult | null, rate: number | null): string =>
    result === null || rate === null ? DASH : rateText(result, rate);
  const changed = from === null || to === null ? DASH : change(to, from);
  const cells = [text(before, from), text(after, to)].map((cell) => h('td', {}, cell));
  return h(
    'tr',
    {},
    workloadCell(either, false),
    ...cells,
    h('td', { 'data-column': 'rate' }, changed),
  );
}
