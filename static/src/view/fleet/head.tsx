import { useRef } from 'preact/hooks';

import {
  formatCount,
  DASH,
  formatDuration,
  formatTimeWithDateUnlessToday,
  formatPercent,
  splitUnit,
  appendEnergyCost,
  markLowerBound,
} from '../../lib/format';
import { plainText, joinSentences } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { Level } from '../../model/describe';
import { CRITICAL_SEVERITY, type Sums } from '../../model/fleet/columns';
import {
  conditionMeaning,
  conditionName,
  conditionHoverText,
  levelOf,
} from '../../model/fleet/describe';
import { hasWord } from '../../model/fleet/filter';
import { valueText } from '../../model/fleet/metric';
import { isUpdating, problemsOf, type FleetAnswers } from '../../model/fleet/reader';
import { isPartiallyReported, energyUnitOf, powerUnit } from '../../model/fleet/totals';
import type { Fleet, FleetState, GpuState } from '../../wire';
import { HeadActions, type HeadAction } from '../menu';
import { SeverityIcon } from '../alerts';
import { useFadedEdges } from './controls';
import type { Scene } from './scene';
import { State } from './table';
import { Trend } from './trend';

/** The status of the data. */
export type FleetStatus = 'loading' | 'live' | 'partial' | 'updating' | 'outdated' | 'error';

/** The levels of statuses. Statuses that are not listed have the level `pending`. */
const LEVELS: Partial<Record<FleetStatus, string>> = { live: 'ok', error: 'error' };
const PROBLEM_LENGTH = 600;

interface FleetHeadProps extends Scene {
  title: string;
  status: FleetStatus;
  actions: readonly HeadAction[];
  onRetry: () => void;
}

/** The header of a fleet: the status of the data, critical GPUs, and the source. */
export function FleetHead(props: FleetHeadProps) {
  const { status, answers, critical, shown, choose } = props;
  const { value } = answers.fleet;
  const word = trans.__('critical');
  return (
    <>
      <div class="gpumon-head gpumon-fleet-head">
        <div class="gpumon-head-row">
          <span
            class="gpumon-status"
            data-testid="gpumon-fleet-status"
            data-level={LEVELS[status] ?? 'pending'}
          >
            <span class="gpumon-dot" aria-hidden="true" />
            <span class="gpumon-status-text">{statusText(status, props)}</span>
          </span>
          {critical > 0 && (
            <button
              type="button"
              class="gpumon-chip gpumon-head-alert"
              data-testid="gpumon-fleet-critical"
              data-level="critical"
              aria-pressed={hasWord(shown.filter, word)}
              title={trans.__('Show only these GPUs')}
              onClick={() => choose(word)}
            >
              <SeverityIcon />
              {trans._n('%2 critical', '%2 critical', critical, formatCount(critical))}
            </button>
          )}
          <h1 class="gpumon-title">{props.title}</h1>
          <span class="gpumon-platform gpumon-wide">{value !== null && sourceText(value)}</span>
          <HeadActions actions={props.actions} />
        </div>
      </div>
      {['partial', 'outdated', 'error'].includes(status) && <FleetNotice {...props} />}
    </>
  );
}

/** A notice with the reasons for missing data. */
function FleetNotice({ status, answers, now_ms, onRetry }: FleetHeadProps) {
  const { value, why } = answers.fleet;
  const problems = value === null ? [why ?? ''] : problemsOf(answers);
  const at_ms = value?.at_ms ?? now_ms;
  return (
    <section
      class="gpumon-notice"
      data-testid="gpumon-fleet-notice"
      data-level={status === 'error' ? 'critical' : 'warning'}
    >
      <h2>
        {status === 'partial'
          ? trans.__('Parts of the fleet could not be read')
          : status === 'outdated'
            ? trans.__(
                'Last known values, from %1 (%2 ago)',
                formatTimeWithDateUnlessToday(at_ms, now_ms),
                formatDuration(now_ms - at_ms),
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

/** Returns a text about the status of the data and the time when they were read. */
export function statusText(status: FleetStatus, { answers, now_ms }: Scene): string {
  const { at_ms = now_ms, refresh_s = 0 } = answers.fleet.value ?? {};
  const at = formatTimeWithDateUnlessToday(at_ms, now_ms);
  return {
    loading: trans.__('Loading'),
    error: trans.__('No response'),
    updating: trans.__('read at %1, updating', at),
    outdated: trans.__('outdated for %1', formatDuration(now_ms - at_ms)),
    partial: trans.__('incomplete, read at %1', at),
    live: trans.__('read at %1, every %2 s', at, formatCount(refresh_s)),
  }[status];
}

/** The maximum number of listed conditions. The most severe conditions are listed. */
const MAX_CONCERNS = 12;

interface TileProps {
  id: string;
  label: string;
  /** The value; `null` until it is known. */
  value: string | null;
  /** The text after the value: its unit, or its share of a total. */
  rest?: string | undefined;
  title?: string | null;
  /**
   * The filter word that a click on the tile toggles. Only tiles with a filter word are buttons.
   */
  word?: string;
  level?: Level;
  trend?: 'held' | 'power';
}

/**
 * The fleet's most important numbers in one line. Each number of GPUs in a certain state is a
 * button that sets a filter.
 */
export function Summary(scene: Scene) {
  const { all, isKnown, answers, shown, range, choose, columns } = scene;
  const { nodes, missing } = columns.fleet;
  const [gpus = 0] = all.gpus;
  const many = (state: GpuState): number => all.states[state]?.[0] ?? 0;
  const lost = countLostGpus(all);
  const [watts = NaN] = all.readings.power;
  const isPowerPartial = isPartiallyReported(all, 'power');
  const { value: usage, why, isLoading } = answers.usage;
  const joules = usage?.energy_joules ?? NaN;
  const isUsagePartial = usage?.state === 'partial';
  const isPending = isLoading || (usage === null && why === null);
  const [power, powerName] = splitUnit(valueText(powerUnit(watts), watts));
  const [energy, unit] = splitUnit(valueText(energyUnitOf(joules), joules));
  const inState = (id: GpuState, label: string, word: string): TileProps => ({
    id,
    label,
    value: formatCount(many(id)),
    rest: gpus === 0 ? '' : formatPercent((many(id) / gpus) * 100),
    word,
  });
  const tiles: TileProps[] = [
    {
      id: 'gpus',
      label: trans.__('GPUs'),
      value: formatCount(gpus),
      rest: trans._n(
        'on %1 node',
        'on %2 nodes',
        nodes.name.length,
        formatCount(nodes.name.length),
      ),
    },
    { ...inState('busy', trans.__('In use'), trans.__('busy')), trend: 'held' },
    inState('free', trans.__('Free'), trans.__('free')),
    {
      ...inState('idle', trans.__('Idle, but held'), trans.__('idle')),
      title: trans.__(
        'GPUs whose memory is held by processes, but on which no kernel has run for minutes.',
      ),
    },
    {
      id: 'lost',
      label: trans.__('Not responding'),
      value: formatCount(lost),
      word: trans.__('lost'),
      title: trans.__('GPUs that are lost or hang, and those of unreachable nodes.'),
      level: lost > 0 ? 'critical' : 'none',
    },
    {
      id: 'power',
      label: trans.__('Power'),
      value: markLowerBound(power, isPowerPartial),
      rest: powerName,
      title:
        missing['power.draw_watts'] ??
        (isPowerPartial ? trans.__('Some GPUs do not report their power.') : null),
      trend: 'power',
    },
    {
      id: 'energy',
      label: trans.__('Energy'),
      value: unit === '' && isPending ? null : markLowerBound(energy, isUsagePartial),
      rest: unit && trans.__('%1 in %2', appendEnergyCost(unit, joules, isUsagePartial), range),
      title: unit === '' ? why : isUsagePartial ? joinSentences(usage.problems) : null,
    },
  ];
  return (
    <div class="gpumon-tiles" role="group" aria-label={trans.__('Summary')}>
      {tiles.map(({ id, label, value, rest, title, word, level, trend }) => {
        const isThere = isKnown && value !== null;
        const attributes = {
          class: 'gpumon-tile',
          'data-tile': id,
          'data-level': level,
          'data-pending': isThere ? undefined : '',
          title: title ?? undefined,
        };
        const content = (
          <>
            <span class="gpumon-tile-label">{label}</span>
            <span class="gpumon-tile-number">
              <span class="gpumon-tile-value">{isThere ? value : DASH}</span>
              <span class="gpumon-tile-rest">{isThere && rest}</span>
            </span>
            {trend && <Trend kind={trend} scene={scene} history={answers.history.value} />}
          </>
        );
        return word === undefined ? (
          <div key={id} {...attributes}>
            {content}
          </div>
        ) : (
          <button
            type="button"
            key={id}
            {...attributes}
            aria-pressed={hasWord(shown.filter, word)}
            onClick={() => choose(word)}
          >
            {content}
          </button>
        );
      })}
    </div>
  );
}

/** Returns the number of GPUs that are lost or whose state is unknown. */
function countLostGpus({ states }: Sums): number {
  return (states.lost?.[0] ?? 0) + (states.unknown?.[0] ?? 0);
}

/**
 * Buttons for the conditions of GPUs. Each shows the number of GPUs with the condition and filters
 * by it.
 */
export function Concerns(scene: Scene) {
  const { concerns, critical, columns, all, shown, choose } = scene;
  const list = useRef<HTMLUListElement>(null);
  const chips = concerns.slice(0, MAX_CONCERNS).map((concern) => ({
    ...concern,
    text: conditionName(concern.kind),
    title: conditionHoverText(concern.kind),
    meaning: conditionMeaning(concern.kind),
    word: `condition:${concern.kind.split(/[\s,]+/)[0] ?? ''}`,
  }));
  const extra = (text: string, many: number, word: string): (typeof chips)[number] => ({
    kind: word,
    severity: CRITICAL_SEVERITY,
    count: many,
    text,
    title: '',
    meaning: '',
    word,
  });
  chips.unshift(
    ...[
      extra(trans.__('All critical'), critical, trans.__('critical')),
      extra(trans.__('Not responding'), countLostGpus(all), trans.__('lost')),
    ].filter((chip) => chip.count > 0),
  );
  useFadedEdges(list, chips.map(({ kind, meaning }) => kind + meaning).join());
  return (
    <section class="gpumon-fleet-concerns" aria-labelledby="gpumon-fleet-concerns">
      <h2 id="gpumon-fleet-concerns">{trans.__('Conditions')}</h2>
      <ul ref={list}>
        {chips.map((chip) => (
          <li key={chip.kind}>
            <button
              type="button"
              class="gpumon-chip"
              data-level={levelOf(chip.severity)}
              aria-pressed={hasWord(shown.filter, chip.word)}
              title={chip.title}
              onClick={() => choose(chip.word)}
            >
              <State text={chip.text} level={levelOf(chip.severity)} />
              {chip.meaning !== '' && <span class="gpumon-chip-meaning">{chip.meaning}</span>}
              <strong class="gpumon-chip-count">{formatCount(chip.count)}</strong>
            </button>
          </li>
        ))}
      </ul>
      {chips.length === 0 && (
        <p class="gpumon-empty">{columns.fleet.missing.conditions ?? trans.__('None')}</p>
      )}
    </section>
  );
}
