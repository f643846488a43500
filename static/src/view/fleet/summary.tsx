import type { ComponentChild } from 'preact';

import { count, DASH, percent } from '../../lib/format';
import { sentences } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { Level } from '../../model/describe';
import { withCost } from '../../model/energy-price';
import { conditionText, conditionTitle, levelOf } from '../../model/fleet/describe';
import { hasWord } from '../../model/fleet/filter';
import { atLeast, valueText } from '../../model/fleet/metric';
import type { FleetAnswers } from '../../model/fleet/reader';
import { isPartial, type Concern, type Totals } from '../../model/fleet/totals';
import { energyUnitOf, powerUnit } from '../../model/fleet/units';
import type { GpuState } from '../../wire';
import type { Palette } from '../palette';
import { State } from './table/cells';
import { Trend, TRENDS } from './trend';

/** Only the worst conditions are listed. */
const CONCERNS_MOST = 12;

export interface SummaryProps {
  /** The sums of all GPUs; `null` until they are known. */
  all: Totals | null;
  answers: FleetAnswers;
  filter: string;
  range: string;
  palette: Palette;
  choose: (word: string) => void;
}

/** The fleet in a line of numbers; those that count GPUs filter by them. */
export function Summary({ all, ...rest }: SummaryProps): ComponentChild {
  const { answers, filter, range, palette, choose } = rest;
  const fleet = answers.fleet.value;
  const [gpus = 0] = all?.gpus ?? [];
  const [watts = NaN] = all?.readings.power ?? [];
  const nodes = fleet?.nodes.name.length ?? 0;
  const inState = (state: GpuState): number => all?.states[state]?.[0] ?? 0;
  const lost = inState('lost') + inState('unknown');
  const { value: usage, why, isLoading } = answers.usage;
  const joules = usage?.energy_joules ?? null;
  const isPowerPartial = all !== null && isPartial(all, 'power');
  const isUsagePartial = usage?.state === 'partial';
  const isUsagePending = isLoading || (usage === null && why === null);
  const [power = DASH, powerName = ''] = valueText(powerUnit(watts), watts).split('\u00a0');
  const [energy = DASH, energyName = ''] = valueText(
    energyUnitOf(joules ?? NaN),
    joules ?? NaN,
  ).split('\u00a0');
  const tile = (
    id: string,
    label: string,
    value: string | null,
    more: Omit<TileProps, 'id' | 'label' | 'value'> = {},
  ): ComponentChild => (
    <Tile
      {...more}
      id={id}
      label={label}
      value={all === null ? null : value}
      choose={choose}
      isChosen={more.word !== undefined && hasWord(filter, more.word)}
    />
  );
  const stateTile = (
    state: GpuState,
    label: string,
    word: string,
    more: Partial<TileProps> = {},
  ): ComponentChild =>
    tile(state, label, count(inState(state)), {
      rest: gpus === 0 ? '' : percent((inState(state) / gpus) * 100),
      word,
      ...more,
    });
  const trend = (kind: 'held' | 'power'): ComponentChild => (
    <Trend kind={TRENDS[kind]} history={answers.history.value} palette={palette} />
  );
  return (
    <div class="gpumon-tiles" role="group" aria-label={trans.__('Summary')}>
      {tile('gpus', trans.__('GPUs'), count(gpus), {
        rest: trans._n('on %1 node', 'on %2 nodes', nodes, count(nodes)),
      })}
      {stateTile('busy', trans.__('In use'), trans.__('busy'), { trend: trend('held') })}
      {stateTile('free', trans.__('Free'), trans.__('free'))}
      {stateTile('idle', trans.__('Idle, but held'), trans.__('idle'), {
        title: trans.__('Somebody holds memory of them, and no kernel has run for minutes.'),
      })}
      {tile('lost', trans.__('Not responding'), count(lost), {
        word: trans.__('lost'),
        title: trans.__('GPUs that are lost or hang, and those of unreachable nodes.'),
        level: lost > 0 ? 'critical' : 'none',
      })}
      {tile('power', trans.__('Power'), atLeast(power, isPowerPartial), {
        rest: powerName,
        title:
          fleet?.missing['power.draw_watts'] ??
          (isPowerPartial ? trans.__('Some GPUs do not report their power.') : undefined),
        trend: trend('power'),
      })}
      {tile(
        'energy',
        trans.__('Energy'),
        joules === null && isUsagePending ? null : atLeast(energy, isUsagePartial),
        {
          rest:
            joules === null
              ? ''
              : trans.__('%1 in %2', withCost(energyName, joules, isUsagePartial), range),
          title: joules === null ? why : isUsagePartial ? sentences(usage.problems) : undefined,
        },
      )}
    </div>
  );
}

interface TileProps {
  id: string;
  label: string;
  /** `null` until it is known. */
  value: string | null;
  /** The unit, or a share. */
  rest?: string;
  title?: string | null | undefined;
  /** The word of the filter; with it, the tile is a button. */
  word?: string;
  level?: Level;
  trend?: ComponentChild;
}

function Tile(
  props: TileProps & { isChosen: boolean; choose: (word: string) => void },
): ComponentChild {
  const { id, label, value, rest, title, word, level, trend, isChosen, choose } = props;
  const attributes = {
    class: 'gpumon-tile',
    'data-tile': id,
    'data-level': level,
    'data-pending': value === null ? '' : undefined,
    title: title ?? undefined,
  };
  const content = (
    <>
      <span class="gpumon-tile-label">{label}</span>
      <span class="gpumon-tile-number">
        <span class="gpumon-tile-value">{value ?? DASH}</span>
        <span class="gpumon-tile-rest">{value !== null && rest}</span>
      </span>
      {trend}
    </>
  );
  return word === undefined ? (
    <div {...attributes}>{content}</div>
  ) : (
    <button type="button" {...attributes} aria-pressed={isChosen} onClick={() => choose(word)}>
      {content}
    </button>
  );
}

export interface ConcernsProps {
  concerns: readonly Concern[];
  /** The number of critical GPUs. */
  critical: number;
  filter: string;
  /** Why conditions are unknown. */
  missing: string | undefined;
  choose: (word: string) => void;
}

/** The conditions with the number of their GPUs; each filters by its GPUs. */
export function Concerns({
  concerns,
  critical,
  filter,
  missing,
  choose,
}: ConcernsProps): ComponentChild {
  const chip = (
    kind: string,
    level: Level,
    text: string,
    many: number,
    word: string,
    title?: string,
  ): ComponentChild => (
    <li key={kind}>
      <button
        type="button"
        class="gpumon-concern"
        data-concern={kind}
        data-level={level}
        aria-pressed={hasWord(filter, word)}
        title={title}
        onClick={() => choose(word)}
      >
        <State text={text} level={level} />
        <strong>{count(many)}</strong>
      </button>
    </li>
  );
  return (
    <section class="gpumon-fleet-concerns" aria-labelledby="gpumon-fleet-concerns">
      <h2 id="gpumon-fleet-concerns">{trans.__('Conditions')}</h2>
      <ul>
        {critical > 0 &&
          chip('', 'critical', trans.__('All critical'), critical, trans.__('critical'))}
        {concerns
          .slice(0, CONCERNS_MOST)
          .map(({ kind, severity, count: many }) =>
            chip(
              kind,
              levelOf(severity),
              conditionText(kind),
              many,
              `condition:${kind.split(/[\s,]+/)[0] ?? ''}`,
              conditionTitle(kind) || undefined,
            ),
          )}
      </ul>
      {concerns.length === 0 && <p class="gpumon-empty">{missing ?? trans.__('None')}</p>}
    </section>
  );
}
