/**
 * The results of the runs that the server knows, and for each result the previous comparable one.
 */

import type { RunDetails, RunItem, RunResult, RunState } from '../wire';
import { resultKey } from './describe-result';

export class RunHistory {
  /** The runs, newest first. */
  runs: readonly RunState[] = [];
  /** A number that grows with each received item. */
  version = 0;
  private readonly items = new Map<string, RunItem[]>();
  /** The number of known items of each run when its details were last requested. */
  private readonly requested = new Map<string, number>();

  /**
   * `fetch` requests the details of a run, and returns `null` on failure. `onChange` is called when
   * they have arrived.
   */
  constructor(
    private readonly fetch: (run: string) => Promise<RunDetails | null>,
    private readonly onChange: () => void,
  ) {}

  /** Updates the states of the runs. If items of a run are missing, its details are requested. */
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

  /** Allows failed requests to be repeated. */
  allowRetries(): void {
    this.requested.clear();
  }

  itemsOf(run: string): readonly RunItem[] {
    return this.items.get(run) ?? [];
  }

  resultsOf(run: string): RunResult[] {
    return this.itemsOf(run).filter((item) => item.item === 'result');
  }

  /** Returns a run with all known items. */
  detailsOf(state: RunState): RunDetails {
    return { ...state, all: [...this.itemsOf(state.run)] };
  }

  /**
   * Returns the newest verified result of an earlier run that is comparable with `result`, or
   * `null` if there is none.
   */
  findPrevious({ run, started_ms }: RunState, result: RunResult): RunResult | null {
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
