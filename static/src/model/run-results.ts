/** The results of runs: those that the server knows, their comparison, and their export. */

import { formatCsv, quoteCell } from '../lib/file-export';
import type { RunDetails, RunItem, RunResult, RunState } from '../wire';
import { resultKey } from './describe-run';
import { valueOf } from './reading';

/** The results of the known runs, and for each result the previous comparable one. */
export class RunHistory {
  /** The runs, newest first. */
  runs: readonly RunState[] = [];
  /** A number that grows with each received item. */
  version = 0;
  private readonly items = new Map<string, RunItem[]>();
  /** The number of items that each run had when the run's details were last requested. */
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

/** A row of a side-by-side comparison of two runs, which may have run on different devices. */
export interface ComparedRow {
  before: RunResult | null;
  after: RunResult | null;
  /** The result of the first run, or of the second run if the first has none. */
  either: RunResult;
}

/**
 * Returns a row for each result of the two runs: the results of the first run in order, then those
 * that only the second run has.
 */
export function compareRuns(
  before: readonly RunResult[],
  after: readonly RunResult[],
): ComparedRow[] {
  const counterpart = (result: RunResult, among: readonly RunResult[]): RunResult | null =>
    among.find(({ id, dtype }) => id === result.id && dtype === result.dtype) ?? null;
  const first = before.map((result) => ({
    before: result,
    after: counterpart(result, after),
    either: result,
  }));
  const rest = after.filter((result) => counterpart(result, before) === null);
  return [...first, ...rest.map((result) => ({ before: null, after: result, either: result }))];
}

const COLUMNS: Record<
  string,
  (result: RunResult, run: RunDetails) => string | number | boolean | null
> = {
  run: (_, { run }) => quoteCell(run),
  started: (_, { started_ms }) => new Date(started_ms).toISOString(),
  workload: ({ id }) => quoteCell(id),
  dtype: ({ dtype }) => quoteCell(dtype),
  device: ({ device }) => quoteCell(device),
  bytes_per_second: ({ bytes_per_second }) => valueOf(bytes_per_second),
  operations_per_second: ({ operations_per_second }) => valueOf(operations_per_second),
  peak_per_second: ({ peak_per_second }) => valueOf(peak_per_second),
  share_of_peak: ({ share }) => valueOf(share),
  limit: ({ limit }) => quoteCell(limit),
  device_us: ({ device_us }) => valueOf(device_us),
  host_us: ({ host_us }) => valueOf(host_us),
  verified: ({ verified }) => verified,
  checked: ({ checked }) => checked,
  wrong: ({ wrong }) => wrong,
};

/** Returns the results of the runs as CSV, with one row per result. */
export function toCsv(runs: readonly RunDetails[]): string {
  const lines = runs.flatMap((run) =>
    run.all
      .filter((item) => item.item === 'result')
      .map((result) => Object.values(COLUMNS).map((read) => read(result, run))),
  );
  return formatCsv([Object.keys(COLUMNS), ...lines]);
}

/** Returns the runs with all data as JSON. */
export function toJson(runs: readonly RunDetails[]): string {
  return `${JSON.stringify({ runs }, null, 2)}\n`;
}
