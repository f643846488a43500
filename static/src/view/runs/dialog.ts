/** What the dialog of benchmarks has in it: a choice, what runs, and what did. */

import { button, h, KeyedRows, setShown, setText } from '../../lib/dom';
import { adoptStyle } from '../../lib/style';
import { trans } from '../../lib/translation';
import type { GpuState } from '../../model/gpu';
import { RUN_STATUS, titleOf } from '../../model/describe-run';
import { answerOf, OWN_HEADERS } from '../../model/request';
import { RunHistory } from '../../model/run-history';
import type { Store } from '../../model/store';
import type { Catalogue, RunDetails, RunState } from '../../wire';
import { closeByPressBeside } from '../modal';
import type { Runner } from '../run-entry';
import style from '../style/runs.css?inline';
import type { Freshness } from '../value';
import { RunCard } from './card';
import { Choice } from './choice';
import { HistoryHead } from './history-head';

export class RunDialog {
  readonly element: HTMLDialogElement;
  private readonly choice: Choice;
  private readonly error = h('p', { class: 'gpumon-run-error', role: 'alert' });
  private readonly liveRegion = h('div', {
    class: 'gpumon-visually-hidden',
    role: 'status',
    'aria-live': 'polite',
  });
  private readonly list = h('div', { class: 'gpumon-run-list' });
  private readonly cards = new KeyedRows(
    this.list,
    ({ run }: RunState) => run,
    ({ run }) => this.newCard(run),
  );
  private readonly history: RunHistory;
  private readonly head: HistoryHead;
  private readonly announced = new Map<string, string>();
  private hasCatalogue = false;

  constructor(
    private readonly store: Store,
    private readonly runner: Runner,
    private readonly invalidate: () => void,
  ) {
    this.choice = new Choice((job) => {
      void this.request('api/v1/runs', {
        method: 'POST',
        headers: OWN_HEADERS,
        body: JSON.stringify(job),
      });
    }, invalidate);
    this.history = new RunHistory(
      async (run) => (await this.request(addressOf(run))) as RunDetails | null,
      invalidate,
    );
    this.head = new HistoryHead(this.history);
    setShown(this.error, false);
    const close = h('span', { 'aria-hidden': 'true' }, '✕');
    this.element = h(
      'dialog',
      {
        class: 'gpumon-run-dialog',
        'aria-label': trans.__('Benchmarks'),
        'data-testid': 'gpumon-runs',
      },
      h(
        'div',
        { class: 'gpumon-run-title-bar' },
        h('h2', {}, trans.__('Benchmarks')),
        button(
          { class: 'gpumon-run-close', title: trans.__('Close') },
          () => this.element.close(),
          close,
        ),
      ),
      h(
        'div',
        { class: 'gpumon-run-content' },
        this.choice.element,
        this.error,
        this.liveRegion,
        this.head.element,
        this.list,
      ),
    );
    this.element.addEventListener('close', () => runner.setRuns(false));
    closeByPressBeside(this.element);
    this.element.addEventListener('keydown', (event) => {
      // Keys mean nothing to what is below.
      event.stopPropagation();
      if (event.key === 'Escape') {
        // A search field would only be emptied.
        event.preventDefault();
        this.element.close();
      }
    });
    adoptStyle(style);
  }

  /** Shows it. What there is to run is asked for until the server has told it. */
  async open(): Promise<void> {
    if (this.element.open) {
      return;
    }
    this.element.showModal();
    this.runner.setRuns(true);
    this.invalidate();
    this.choice.focus();
    this.history.retry();
    const answer = this.hasCatalogue ? null : await this.request('api/v1/catalogue');
    if (answer !== null) {
      this.hasCatalogue = true;
      this.choice.setCatalogue(answer as Catalogue);
    }
  }

  render(gpus: readonly GpuState[], freshness: Freshness): void {
    if (!this.element.open) {
      return;
    }
    this.history.update(this.store.runs.values());
    const { runs } = this.history;
    const busy = runs.find(({ status, own }) => own && status === 'running');
    const isSimulated = this.store.inventory?.platform.source === 'simulated';
    this.choice.update(gpus, isSimulated, busy !== undefined);
    this.cards.update(runs, (card, run) => card.update(run, gpus, freshness, run === runs[0]));
    const chosen = runs.filter(({ run }) => this.cards.get(run)?.chosen === true);
    this.head.update(chosen, freshness.now_ms);
    this.announce(runs);
  }

  private newCard(run: string): RunCard {
    const cancel = (): void =>
      void this.request(addressOf(run), { method: 'DELETE', headers: OWN_HEADERS });
    return new RunCard(this.history, cancel, this.invalidate);
  }

  /** Shows a run that begins, and announces to screen readers that it does and how it ends. */
  private announce(runs: readonly RunState[]): void {
    for (const run of runs) {
      const before = this.announced.get(run.run);
      this.announced.set(run.run, run.status);
      if (before === undefined && run.status === 'running') {
        this.cards.get(run.run)?.element.scrollIntoView({ block: 'nearest' });
      }
      if (before !== run.status && (before !== undefined || run.status === 'running')) {
        setText(this.liveRegion, `${titleOf(run)}: ${RUN_STATUS()[run.status]}`);
      }
    }
  }

  /** The server's answer; `null` where it has refused, which is said. */
  private async request(path: string, init?: RequestInit): Promise<unknown> {
    const answer = await answerOf(this.runner.request(path, init));
    this.showError(answer.why ?? '');
    return answer.json;
  }

  private showError(why: string): void {
    setText(this.error, why);
    setShown(this.error, why !== '');
    this.invalidate();
  }
}

function addressOf(run: string): string {
  return `api/v1/runs/${encodeURIComponent(run)}`;
}
