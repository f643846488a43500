/** What came of the runs that the server knows: each one's results, and what of it came before. */

import type { RunDetails, RunItem, RunResult, RunState } from '../wire';
import { resultKey } from './describe-result';

export class RunHistory {
  /** The newest first. */
  runs: readonly RunState[] = [];
  /** Grows with each item that has come. */
  version = 0;
  private readonly items = new Map<string, RunItem[]>();
  /** How many items of a run were there when all of them were asked for. */
  private readonly requested = new Map<string, number>();

  /**
   * `fetch` asks for a run with all that came of it, `null` where that fails; `onChange` is called
   * when it has come.
   */
  constructor(
    private readonly fetch: (run: string) => Promise<RunDetails | null>,
    private readonly onChange: () => void,
  ) {}

  /**
   * Takes over how the runs are now. Where more came of one than its frames have told, that is
   * asked for.
   */
  update(runs: Iterable<RunState>): void {
    this.runs = [...runs].sort((a, b) => b.started_ms - a.started_ms);
    for (const { run, items, newest } of this.runs) {
      const known = this.itemsOf(run).length;
      if (items === known + 1 && newest !== null) {
        this.add(run, [newest]);
      } else if (items > known && items > (this.requested.get(run) ?? 0)) {
        this.requested.set(run, items);
        void this.fetch(run).then((details) => {
          if (details !== null) {
            this.add(run, details.all.slice(this.itemsOf(run).length));
            this.requested.delete(run);
            this.onChange();
          }
        });
      }
    }
  }

  /** What could not be had is asked for once more. */
  retry(): void {
    this.requested.clear();
  }

  itemsOf(run: string): readonly RunItem[] {
    return this.items.get(run) ?? [];
  }

  resultsOf(run: string): RunResult[] {
    return this.itemsOf(run).filter((item) => item.item === 'result');
  }

  /** A run with all that is known of it. */
  detailsOf(state: RunState): RunDetails {
    return { ...state, all: [...this.itemsOf(state.run)] };
  }

  /** The newest verified result of the same from before this run; `null` where there is none. */
  before({ run, started_ms }: RunState, result: RunResult): RunResult | null {
    const key = resultKey(result);
    for (const earlier of this.runs) {
      const found =
        earlier.run !== run && earlier.started_ms <= started_ms
          ? this.resultsOf(earlier.run).find((each) => each.verified && resultKey(each) === key)
          : undefined;
      if (found !== undefined) {
        return found;
      }
    }
    return null;
  }

  private add(run: string, items: readonly RunItem[]): void {
    this.items.set(run, [...this.itemsOf(run), ...items]);
    this.version += items.length;
  }
}
