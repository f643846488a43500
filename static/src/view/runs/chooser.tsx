import type { RefObject } from 'preact';
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';

import { formatDuration } from '../../lib/format';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import {
  benchmarkGroups,
  matchesQuery,
  createJob,
  runsOn,
  listTargets,
  type Benchmark,
} from '../../model/benchmarks';
import type { GpuState } from '../../model/gpu';
import type { Catalogue } from '../../wire';

interface ChooserProps {
  /** The benchmarks of the server; `null` until it has sent them. */
  catalogue: Catalogue | null;
  gpus: readonly GpuState[];
  isSimulated: boolean;
  /** Whether a benchmark is running on the server. */
  isBusy: boolean;
  search: RefObject<HTMLInputElement | null>;
  onStart: (job: object) => void;
}

/**
 * A list of benchmarks with a search field, and a choice of devices. Arrow keys in the search field
 * select a benchmark.
 */
export function Chooser({ catalogue, gpus, isSimulated, isBusy, search, onStart }: ChooserProps) {
  const [query, setQuery] = useState('');
  const [wanted, setWanted] = useState<string | null>(null);
  const [device, setDevice] = useState('');
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const refusal = catalogue?.refusal ?? null;
  const count = catalogue?.entries.length ?? 0;

  // Simulated GPUs cannot run CUDA code, so only the CPU is offered.
  const targets = listTargets(isSimulated ? [] : gpus);
  const target = targets.find(({ key }) => key === device) ?? targets[0];
  const canRun = (benchmark: Benchmark): boolean =>
    target !== undefined && runsOn(benchmark, target);
  const groups = useMemo(() => benchmarkGroups(catalogue?.entries ?? []), [catalogue]);
  const found = groups
    .map(({ label, benchmarks }) => ({
      label,
      benchmarks: benchmarks.filter((benchmark) => matchesQuery(benchmark, query.trim())),
    }))
    .filter(({ benchmarks }) => benchmarks.length > 0);
  const choosable = found.flatMap(({ benchmarks }) => benchmarks).filter(canRun);
  const chosen = choosable.find(({ key }) => key === wanted) ?? choosable[0];
  // The key is encoded because an ID must not contain spaces.
  const idOf = (key: string): string => `${id}-${encodeURIComponent(key)}`;
  const job = chosen === undefined || target === undefined ? null : createJob(chosen, target);
  const canStart = job !== null && !isBusy && refusal === null;

  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [chosen?.key]);

  const note =
    refusal !== null
      ? trans.__('Benchmarks cannot be started here: %1', plainText(refusal))
      : isSimulated
        ? trans.__('Benchmarks cannot run on simulated GPUs, only on the CPU.')
        : '';
  return (
    <div class="gpumon-run-chooser">
      <form
        class="gpumon-run-choice"
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          if (canStart) {
            onStart(job);
          }
        }}
      >
        <input
          ref={search}
          class="gpumon-run-search"
          type="text"
          role="combobox"
          aria-label={trans.__('Search benchmarks')}
          aria-autocomplete="list"
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={chosen && idOf(chosen.key)}
          autocomplete="off"
          spellcheck={false}
          placeholder={
            catalogue === null ? '' : trans._n('Search %1 benchmark', 'Search %1 benchmarks', count)
          }
          value={query}
          onInput={({ currentTarget }) => {
            setQuery(currentTarget.value);
            setWanted(null);
          }}
          onKeyDown={(event) => {
            const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
            if (by !== undefined && chosen !== undefined) {
              event.preventDefault();
              const next = choosable[choosable.indexOf(chosen) + by] ?? chosen;
              setWanted(next.key);
            }
          }}
        />
        <select
          aria-label={trans.__('Device')}
          value={target?.key}
          onChange={({ currentTarget }) => setDevice(currentTarget.value)}
        >
          {targets.map(({ key, name }) => (
            <option key={key} value={key}>
              {name}
            </option>
          ))}
        </select>
        <button
          class="gpumon-primary"
          type="submit"
          disabled={!canStart}
          title={isBusy ? trans.__('Another benchmark is running') : undefined}
        >
          {trans.__('Start')}
        </button>
      </form>
      <p role="status" hidden={note === ''}>
        {note}
      </p>
      <div
        class="gpumon-run-options"
        id={id}
        ref={list}
        role="listbox"
        aria-label={trans.__('Benchmarks')}
        onDblClick={() => form.current?.requestSubmit()}
        // After a click on the list, the focus returns to the search field, so that its keys still
        // work.
        onPointerUp={() => search.current?.focus()}
      >
        {found.map(({ label, benchmarks }, place) => (
          <div key={label} role="group" aria-labelledby={`${id}-${place}`}>
            <div class="gpumon-run-group" id={`${id}-${place}`}>
              {label}
            </div>
            {benchmarks.map((benchmark) => (
              <Option
                key={benchmark.key}
                benchmark={benchmark}
                id={idOf(benchmark.key)}
                isChosen={benchmark === chosen}
                canRun={canRun(benchmark)}
                onChoose={() => setWanted(benchmark.key)}
              />
            ))}
          </div>
        ))}
      </div>
      {found.length === 0 && query.trim() !== '' && (
        <p class="gpumon-empty">{trans.__('No benchmark matches the search.')}</p>
      )}
    </div>
  );
}

function Option({
  benchmark: { title, does, seconds },
  id,
  isChosen,
  canRun,
  onChoose,
}: {
  benchmark: Benchmark;
  id: string;
  isChosen: boolean;
  canRun: boolean;
  onChoose: () => void;
}) {
  const time = seconds === null ? '' : trans.__('about %1', formatDuration(seconds * 1000));
  return (
    <div
      class="gpumon-run-option"
      role="option"
      id={id}
      aria-selected={isChosen}
      aria-disabled={canRun ? undefined : true}
      onClick={canRun ? onChoose : undefined}
    >
      <span class="gpumon-run-title">{title}</span>
      <span class="gpumon-run-text">{canRun ? time : trans.__('needs a GPU')}</span>
      <span class="gpumon-run-does">{does}</span>
    </div>
  );
}
