/** The benchmarks that a search finds, one of which is chosen: by arrow keys in the search field, or by a click. */

import { h, setAttribute, setShown, setText } from '../../lib/dom';
import { duration } from '../../lib/format';
import { trans } from '../../lib/translation';
import { matches, type Benchmark, type BenchmarkGroup } from '../../model/benchmarks';

interface Option {
  benchmark: Benchmark;
  element: HTMLElement;
  note: HTMLElement;
}

interface Section {
  element: HTMLElement;
  options: readonly Option[];
}

let lists = 0;

export class BenchmarkList {
  readonly id = `gpumon-benchmarks-${(lists += 1)}`;
  readonly element = h('div', {
    class: 'gpumon-run-options',
    id: this.id,
    role: 'listbox',
    'aria-label': trans.__('Benchmarks'),
  });
  private sections: readonly Section[] = [];
  private active: Option | null = null;
  private query = '';
  private canRun: (benchmark: Benchmark) => boolean = () => true;

  /** `onChange` is called with the id of the element that is chosen now. */
  constructor(private readonly onChange: (id: string | null) => void) {}

  get chosen(): Benchmark | null {
    return this.active?.benchmark ?? null;
  }

  /** Whether nothing is found. */
  get isEmpty(): boolean {
    return this.sections.every(({ element }) => element.hidden);
  }

  setGroups(groups: readonly BenchmarkGroup[]): void {
    this.sections = groups.map((group, i) => this.newSection(group, `${this.id}-${i}`));
    this.element.replaceChildren(...this.sections.map(({ element }) => element));
    this.filter(this.query);
  }

  /** Only those that can run can be chosen; the others say why they are not. */
  setDevice(canRun: (benchmark: Benchmark) => boolean): void {
    this.canRun = canRun;
    for (const { benchmark, element, note } of this.all) {
      const can = canRun(benchmark);
      setAttribute(element, 'aria-disabled', can ? null : 'true');
      const { seconds } = benchmark;
      const lasts = seconds === null ? '' : trans.__('about %1', duration(seconds * 1000));
      setText(note, can ? lasts : trans.__('needs a GPU'));
    }
    this.keepChoice();
  }

  /** Shows what has all words of `query`, and chooses the first of it. */
  filter(query: string): void {
    const changed = query !== this.query;
    this.query = query;
    for (const { element, options } of this.sections) {
      for (const option of options) {
        setShown(option.element, matches(option.benchmark, query));
      }
      setShown(
        element,
        options.some((option) => !option.element.hidden),
      );
    }
    if (changed) {
      this.choose(this.choosable[0] ?? null);
    } else {
      this.keepChoice();
    }
  }

  /** Chooses the next one, or the one before. */
  move(by: 1 | -1): void {
    const { choosable } = this;
    const at = this.active === null ? -1 : choosable.indexOf(this.active);
    this.choose(choosable[Math.min(Math.max(0, at + by), choosable.length - 1)] ?? null);
  }

  private get all(): Option[] {
    return this.sections.flatMap(({ options }) => options);
  }

  private get choosable(): Option[] {
    return this.all.filter(({ element, benchmark }) => !element.hidden && this.canRun(benchmark));
  }

  private keepChoice(): void {
    const { choosable, active } = this;
    this.choose(active !== null && choosable.includes(active) ? active : (choosable[0] ?? null));
  }

  private choose(option: Option | null): void {
    if (option === this.active) {
      return;
    }
    this.active?.element.setAttribute('aria-selected', 'false');
    this.active = option;
    option?.element.setAttribute('aria-selected', 'true');
    this.scrollTo(option);
    this.onChange(option?.element.id ?? null);
  }

  /** Above the first of a group its heading is shown, too. */
  private scrollTo(option: Option | null): void {
    const { element } = this;
    if (option === null || option === this.choosable[0]) {
      element.scrollTop = 0;
      return;
    }
    const [list, own] = [element.getBoundingClientRect(), option.element.getBoundingClientRect()];
    const heading = 24;
    element.scrollTop +=
      Math.min(0, own.top - heading - list.top) + Math.max(0, own.bottom - list.bottom);
  }

  private newSection({ label, benchmarks }: BenchmarkGroup, id: string): Section {
    const options = benchmarks.map((benchmark, i) => this.newOption(benchmark, `${id}-${i}`));
    const heading = h('div', { class: 'gpumon-run-group', id }, label);
    const element = h(
      'div',
      { role: 'group', 'aria-labelledby': id },
      heading,
      ...options.map((each) => each.element),
    );
    return { element, options };
  }

  private newOption(benchmark: Benchmark, id: string): Option {
    const note = h('span', { class: 'gpumon-run-text' });
    const element = h(
      'div',
      { class: 'gpumon-run-option', role: 'option', id, 'aria-selected': 'false' },
      h('span', { class: 'gpumon-run-title' }, benchmark.title),
      note,
      h('span', { class: 'gpumon-run-does' }, benchmark.does),
    );
    const option = { benchmark, element, note };
    element.addEventListener('click', () => {
      if (this.canRun(benchmark)) {
        this.choose(option);
      }
    });
    return option;
  }
}
