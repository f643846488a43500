import type { ComponentChild } from 'preact';

import { count, duration, since } from '../../lib/format';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import { hasWord } from '../../model/fleet/filter';
import { isUpdating, problemsOf, type FleetAnswers } from '../../model/fleet/reader';
import type { Fleet, FleetState } from '../../wire';
import { HeadActions, type HeadAction } from '../head-action';
import { SeverityIcon } from '../severity-icon';

/** What is known of the fleet. */
export type FleetStatus = 'loading' | 'live' | 'partial' | 'updating' | 'outdated' | 'error';

const LEVELS: Record<FleetStatus, string> = {
  loading: 'pending',
  live: 'ok',
  partial: 'pending',
  updating: 'pending',
  outdated: 'pending',
  error: 'error',
};
const PROBLEM_LENGTH = 600;

export interface FleetHeadProps {
  title: string;
  status: FleetStatus;
  answers: FleetAnswers;
  now_ms: number;
  /** The number of critical GPUs. */
  critical: number;
  filter: string;
  actions: readonly HeadAction[];
  choose: (word: string) => void;
  onRetry: () => void;
}

/** The head of a fleet: whether the data is current, critical GPUs, and the source. */
export function FleetHead(props: FleetHeadProps): ComponentChild {
  const { title, status, answers, now_ms, critical, filter, actions, choose } = props;
  const fleet = answers.fleet.value;
  return (
    <>
      <div class="gpumon-head gpumon-fleet-head">
        <div class="gpumon-head-row">
          <span class="gpumon-status" data-testid="gpumon-fleet-status" data-level={LEVELS[status]}>
            <span class="gpumon-dot" aria-hidden="true" />
            <span class="gpumon-status-text">{statusText(status, fleet, now_ms)}</span>
          </span>
          {critical > 0 && (
            <button
              type="button"
              class="gpumon-chip gpumon-head-alert"
              data-testid="gpumon-fleet-critical"
              data-level="critical"
              aria-pressed={hasWord(filter, trans.__('critical'))}
              title={trans.__('Show only these GPUs')}
              onClick={() => choose(trans.__('critical'))}
            >
              <SeverityIcon />
              {trans.__('%1 critical', count(critical))}
            </button>
          )}
          <h1 class="gpumon-title">{title}</h1>
          <span class="gpumon-platform gpumon-wide">{fleet !== null && sourceText(fleet)}</span>
          <HeadActions actions={actions} />
        </div>
      </div>
      {['partial', 'outdated', 'error'].includes(status) && <FleetNotice {...props} />}
    </>
  );
}

/** What could not be read, and why. */
function FleetNotice({ status, answers, now_ms, onRetry }: FleetHeadProps): ComponentChild {
  const { value, why } = answers.fleet;
  const problems = value === null ? [why ?? ''] : problemsOf(answers);
  const at_ms = value?.at_ms ?? now_ms;
  return (
    <section
      class="gpumon-notice gpumon-fleet-notice"
      data-testid="gpumon-fleet-notice"
      data-level={status === 'error' ? 'critical' : 'warning'}
    >
      <h2>
        {status === 'partial'
          ? trans.__('Some of it could not be read')
          : status === 'outdated'
            ? trans.__(
                'Last known values, from %1 (%2 ago)',
                since(at_ms, now_ms),
                duration(now_ms - at_ms),
              )
            : trans.__('The fleet cannot be shown')}
      </h2>
      <ul>
        {problems.map((problem) => (
          <li key={problem}>{plainText(problem, PROBLEM_LENGTH)}</li>
        ))}
      </ul>
      <button type="button" class="gpumon-retry" onClick={onRetry}>
        {trans.__('Retry now')}
      </button>
    </section>
  );
}

export function statusOf({ fleet: { value, why } }: FleetAnswers): FleetStatus {
  if (value === null) {
    return why === null ? 'loading' : 'error';
  }
  const states: Partial<Record<FleetState, FleetStatus>> = {
    loading: value.problems.length === 0 ? 'loading' : 'error',
    current: 'live',
    outdated: isUpdating(value) ? 'updating' : 'outdated',
  };
  return why === null ? (states[value.state] ?? 'partial') : 'outdated';
}

function sourceText({ source }: Fleet): string {
  const name = plainText(source.name, 120);
  return source.kind === 'hosts' ? trans.__('%1, over ssh', name) : trans.__('from %1', name);
}

function statusText(status: FleetStatus, fleet: Fleet | null, now_ms: number): string {
  const at_ms = fleet?.at_ms ?? now_ms;
  switch (status) {
    case 'loading':
      return trans.__('Loading');
    case 'error':
      return trans.__('No answer');
    case 'updating':
      return trans.__('read at %1, updating', since(at_ms, now_ms));
    case 'outdated':
      return trans.__('outdated for %1', duration(now_ms - at_ms));
    case 'partial':
      return trans.__('incomplete, read at %1', since(at_ms, now_ms));
    case 'live':
      return trans.__('read at %1, every %2 s', since(at_ms, now_ms), count(fleet?.refresh_s ?? 0));
  }
}
