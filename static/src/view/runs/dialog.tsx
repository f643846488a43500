import type { ComponentChild } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { downloadBlob } from '../../lib/file-export';
import { formatTimeWithDateUnlessToday } from '../../lib/format';
import { addStyleSheetOnce } from '../../lib/dom';
import { joinParts } from '../../lib/text';
import { trans } from '../../lib/translation';
import { deviceNames, RUN_STATUS, titleOf } from '../../model/describe-run';
import { makeRequestInit, readJsonResponse } from '../../model/request';
import { compareRuns, toCsv, toJson, RunHistory } from '../../model/run-results';
import type { Catalogue, RunDetails, RunState } from '../../wire';
import { Modal } from '../modal';
import type { RunEntryProps } from '../dialog-entries';
import style from '../style/runs.css?inline';
import { Chooser } from './chooser';
import { ComparisonTable } from './result-table';
import { RunCard } from './run-card';

/** The benchmark dialog: available benchmarks, running ones, and earlier results. */
export function RunDialog(props: RunEntryProps) {
  const { store, runner, gpus, freshness, isOpen, onClose } = props;
  const [catalogue, setCatalogue] = useState<Catalogue | null>(null);
  const [error, setError] = useState('');
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [, setFetched] = useState(0);
  const search = useRef<HTMLInputElement>(null);
  const last = useRef<ComponentChild>(null);

  /**
   * Sends a request and returns the server's response. If the request fails, shows the reason and
   * returns `null`.
   */
  const ask = async (path: string, init?: RequestInit): Promise<unknown> => {
    const answer = await readJsonResponse(runner.request(path, init));
    setError(answer.why ?? '');
    return answer.json;
  };
  const history = useMemo(
    () =>
      new RunHistory(
        async (run) => (await ask(runUrl(run))) as RunDetails | null,
        () => setFetched((count) => count + 1),
      ),
    [],
  );
  const announcement = useAnnouncement();

  useLayoutEffect(() => {
    if (!isOpen) {
      return undefined;
    }
    addStyleSheetOnce(style);
    search.current?.focus();
    runner.setRuns(true);
    history.allowRetries();
    if (catalogue === null) {
      void ask('api/v1/catalogue').then((answer) => setCatalogue(answer as Catalogue | null));
    }
    return () => runner.setRuns(false);
  }, [isOpen]);

  if (isOpen) {
    history.update(store.runs.values());
    const { runs } = history;
    last.current = (
      <>
        <div class="gpumon-run-title-bar">
          <h2>{trans.__('Benchmarks')}</h2>
          <button
            type="button"
            class="gpumon-run-close"
            title={trans.__('Close')}
            onClick={onClose}
          >
            <span aria-hidden="true">✕</span>
          </button>
        </div>
        <div class="gpumon-run-content">
          <Chooser
            catalogue={catalogue}
            gpus={gpus}
            isSimulated={store.inventory?.platform.source === 'simulated'}
            isBusy={runs.some(({ status, own }) => own && status === 'running')}
            search={search}
            onStart={(job) => void ask('api/v1/runs', makeRequestInit('POST', job))}
          />
          <p class="gpumon-error" role="alert" hidden={error === ''}>
            {error}
          </p>
          <div class="gpumon-visually-hidden" role="status" aria-live="polite">
            {announcement(runs)}
          </div>
          {runs.length > 0 && (
            <Results
              history={history}
              chosen={runs.filter(({ run }) => chosen.includes(run))}
              now_ms={freshness.now_ms}
            />
          )}
          <div class="gpumon-run-list">
            {runs.map((state, place) => (
              <RunCard
                key={state.run}
                {...{ state, history, gpus, freshness }}
                isNewest={place === 0}
                isChosen={chosen.includes(state.run)}
                onChoose={(isChosen) =>
                  setChosen((before) => [
                    ...before.filter((run) => run !== state.run),
                    ...(isChosen ? [state.run] : []),
                  ])
                }
                onCancel={() => void ask(runUrl(state.run), makeRequestInit('DELETE'))}
              />
            ))}
          </div>
        </div>
      </>
    );
  }
  return (
    <Modal
      class="gpumon-run-dialog"
      label={trans.__('Benchmarks')}
      testId="gpumon-runs"
      isOpen={isOpen}
      onClose={onClose}
    >
      {last.current}
    </Modal>
  );
}

/**
 * The header of the list of runs. It contains the comparison of two selected runs and the export.
 */
function Results({
  history,
  chosen,
  now_ms,
}: {
  history: RunHistory;
  chosen: readonly RunState[];
  now_ms: number;
}) {
  const exported = chosen.length > 0 ? chosen : history.runs;
  const [after, before] = chosen;
  const areTwo = chosen.length === 2 && after !== undefined && before !== undefined;
  const nameOf = (state: RunState): string =>
    joinParts([deviceNames(state), formatTimeWithDateUnlessToday(state.started_ms, now_ms)]);
  return (
    <div>
      <div class="gpumon-run-head">
        <h3>{trans.__('Results')}</h3>
        <span class="gpumon-run-text">
          {areTwo
            ? trans.__('Comparison of two runs')
            : trans.__('Select two runs to compare them')}
        </span>
        {EXPORTS.map(([name, type, write]) => (
          <button
            type="button"
            key={name}
            class="gpumon-chip"
            title={trans.__('Save the selected runs as %1, or all runs if none is selected', name)}
            disabled={exported.every(({ run }) => history.resultsOf(run).length === 0)}
            onClick={() => {
              const text = write(exported.map((state) => history.detailsOf(state)));
              downloadBlob(new Blob([text], { type }), `gpumon-benchmarks.${name.toLowerCase()}`);
            }}
          >
            {name}
          </button>
        ))}
      </div>
      <div class="gpumon-run-compared">
        {areTwo && (
          <ComparisonTable
            rows={compareRuns(history.resultsOf(before.run), history.resultsOf(after.run))}
            names={[nameOf(before), nameOf(after)]}
          />
        )}
      </div>
    </div>
  );
}

const EXPORTS = [
  ['CSV', 'text/csv', toCsv],
  ['JSON', 'application/json', toJson],
] as const;

/** Returns a function that returns the text for screen readers when a run starts or ends. */
function useAnnouncement(): (runs: readonly RunState[]) => string {
  const known = useRef(new Map<string, string>());
  const text = useRef('');
  return (runs) => {
    for (const state of runs) {
      const before = known.current.get(state.run);
      known.current.set(state.run, state.status);
      if (before !== state.status && (before !== undefined || state.status === 'running')) {
        text.current = `${titleOf(state)}: ${RUN_STATUS()[state.status]}`;
      }
    }
    return text.current;
  };
}

function runUrl(run: string): string {
  return `api/v1/runs/${encodeURIComponent(run)}`;
}
