/** What to run, and where. */

import { h, setAttribute, setShown, setText } from '../../lib/dom';
import { plainText } from '../../lib/text';
import { table, trans } from '../../lib/translation';
import type { GpuState } from '../../model/gpu';
import { jobOf, targetsOf, type RunTarget } from '../../model/run-job';
import type { CatalogueEntry, RunKind } from '../../wire';

const GROUPS = table((): readonly [RunKind, string][] => [
  ['bench', trans.__('Workloads')],
  ['seeds', trans.__('Tutorial benchmarks')],
  ['burn', trans.__('Stress tests')],
  ['oom', trans.__('Out-of-memory demos')],
  ['selftest', trans.__('Self-test')],
]);

export class Choice {
  readonly element: HTMLElement;
  private readonly what = h('select', { 'aria-label': trans.__('Workload'), 'data-testid': 'gpumon-run-what' });
  private readonly target = h('select', { 'aria-label': trans.__('Device') });
  private readonly start = h('button', { class: 'gpumon-chip gpumon-run-start', type: 'submit' }, trans.__('Start'));
  private readonly does = h('p', { class: 'gpumon-run-does', 'data-testid': 'gpumon-run-does' });
  private readonly note = h('p', { class: 'gpumon-run-error', role: 'status' });
  private entries: readonly CatalogueEntry[] = [];
  private targets: readonly RunTarget[] = [];
  private shown = '';

  constructor(start: (job: object) => void, invalidate: () => void) {
    const form = h('form', { class: 'gpumon-run-choice' }, this.what, this.target, this.start);
    this.element = h('div', {}, form, this.does, this.note);
    this.what.addEventListener('change', invalidate);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const target = this.targets.find(({ key }) => key === this.target.value);
      const job = this.entry === undefined || target === undefined ? null : jobOf(this.entry, target);
      if (job !== null) {
        start(job);
      }
    });
  }

  focus(): void {
    this.what.focus();
  }

  /** There is this to choose from. */
  setEntries(entries: readonly CatalogueEntry[]): void {
    this.entries = entries;
    const groups = GROUPS().map(([kind, label]) => {
      const group = h('optgroup', { label });
      const own = entries.flatMap((entry, i) => (entry.kind === kind ? [{ entry, i }] : []));
      group.append(...own.map(({ entry, i }) => h('option', { value: String(i) }, plainText(entry.title))));
      return group;
    });
    this.what.replaceChildren(...groups.filter(({ children }) => children.length > 0));
  }

  update(gpus: readonly GpuState[], isSimulated: boolean, busy: boolean): void {
    const { entry } = this;
    setShown(this.element, entry !== undefined);
    if (entry === undefined) {
      return;
    }
    setText(this.does, `${plainText(entry.does)} ${plainText(entry.teaches)}`);
    this.targets = targetsOf(entry, gpus);
    const keys = this.targets.map(({ key, name }) => `${key} ${name}`).join('\n');
    if (keys !== this.shown) {
      this.shown = keys;
      const { value } = this.target;
      this.target.replaceChildren(...this.targets.map(({ key, name }) => h('option', { value: key }, name)));
      if (this.targets.some(({ key }) => key === value)) {
        this.target.value = value;
      }
    }
    this.start.disabled = busy || this.targets.length === 0;
    const simulated = trans.__('Simulated devices cannot run benchmarks. Choose one that runs on the CPU.');
    setText(this.note, simulated);
    setShown(this.note, isSimulated && this.targets.length === 0);
    const why = busy ? trans.__('One run at a time') : isSimulated ? simulated : trans.__('No GPU to run it on');
    setAttribute(this.start, 'title', this.start.disabled ? why : null);
  }

  private get entry(): CatalogueEntry | undefined {
    return this.entries[Number(this.what.value)];
  }
}
