/** What to run, and where. */

import { h, setAttribute, setShown, setText } from '../../lib/dom';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import { benchmarkGroups } from '../../model/benchmarks';
import type { GpuState } from '../../model/gpu';
import { jobOf, runsOn, targetsOf, type RunTarget } from '../../model/run-job';
import type { Catalogue } from '../../wire';
import { BenchmarkList } from './benchmark-list';

export class Choice {
  readonly element: HTMLElement;
  private readonly list = new BenchmarkList((id) => {
    setAttribute(this.search, 'aria-activedescendant', id);
    this.invalidate();
  });
  private readonly search = h('input', {
    class: 'gpumon-run-search',
    type: 'search',
    role: 'combobox',
    'aria-label': trans.__('Search benchmarks'),
    'aria-autocomplete': 'list',
    'aria-expanded': 'true',
    'aria-controls': this.list.id,
    autocomplete: 'off',
    spellcheck: 'false',
  });
  private readonly target = h('select', { 'aria-label': trans.__('Device') });
  private readonly start = h(
    'button',
    { class: 'gpumon-primary', type: 'submit' },
    trans.__('Start'),
  );
  private readonly none = h(
    'p',
    { class: 'gpumon-empty' },
    trans.__('No benchmark matches the search.'),
  );
  private readonly note = h('p', { class: 'gpumon-run-note', role: 'status' });
  private targets: readonly RunTarget[] = [];
  private shownTargets = '';
  private refusal: string | null = null;

  constructor(
    start: (job: object) => void,
    private readonly invalidate: () => void,
  ) {
    const form = h('form', { class: 'gpumon-run-choice' }, this.search, this.target, this.start);
    this.element = h(
      'div',
      { class: 'gpumon-run-chooser' },
      form,
      this.note,
      this.list.element,
      this.none,
    );
    setShown(this.none, false);
    this.search.addEventListener('input', () => this.list.filter(this.search.value.trim()));
    this.search.addEventListener('keydown', (event) => {
      if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
        event.preventDefault();
        this.list.move(event.key === 'ArrowDown' ? 1 : -1);
      }
    });
    this.list.element.addEventListener('dblclick', () => form.requestSubmit());
    // The search field keeps the focus, and with it the keys.
    this.list.element.addEventListener('pointerup', () => this.focus());
    this.target.addEventListener('change', () => this.updateDevice());
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const { chosen } = this.list;
      const job = chosen === null || this.device === undefined ? null : jobOf(chosen, this.device);
      if (job !== null && !this.start.disabled) {
        start(job);
      }
    });
  }

  focus(): void {
    this.search.focus();
  }

  /** There is this to choose from. */
  setCatalogue({ entries, refusal }: Catalogue): void {
    this.refusal = refusal;
    this.list.setGroups(benchmarkGroups(entries));
    this.updateDevice();
    const count = entries.length;
    this.search.placeholder = trans._n('Search %1 benchmark', 'Search %1 benchmarks', count);
  }

  update(gpus: readonly GpuState[], isSimulated: boolean, busy: boolean): void {
    // CUDA knows nothing of GPUs that are simulated.
    this.targets = targetsOf(isSimulated ? [] : gpus);
    const keys = this.targets.map(({ key, name }) => `${key} ${name}`).join('\n');
    if (keys !== this.shownTargets) {
      this.shownTargets = keys;
      const { value } = this.target;
      this.target.replaceChildren(
        ...this.targets.map(({ key, name }) => h('option', { value: key }, name)),
      );
      if (this.targets.some(({ key }) => key === value)) {
        this.target.value = value;
      }
      this.updateDevice();
    }
    const { chosen } = this.list;
    const why =
      this.refusal === null
        ? ''
        : trans.__('No benchmark can be started here: %1', plainText(this.refusal));
    const simulated = isSimulated
      ? trans.__('Simulated devices cannot run benchmarks; the CPU can.')
      : '';
    setText(this.note, why || simulated);
    setShown(this.note, this.note.textContent !== '');
    setShown(this.none, this.list.isEmpty && this.search.value !== '');
    this.start.disabled = busy || chosen === null || this.refusal !== null;
    setAttribute(this.start, 'title', busy ? trans.__('One run at a time') : null);
  }

  private get device(): RunTarget | undefined {
    return this.targets.find(({ key }) => key === this.target.value);
  }

  private updateDevice(): void {
    const { device } = this;
    this.list.setDevice((benchmark) => device !== undefined && runsOn(benchmark, device));
  }
}
