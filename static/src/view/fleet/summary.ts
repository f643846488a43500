/** The fleet in a line of numbers; those that count GPUs choose them. */

import { button, h, setAttribute, setText } from '../../lib/dom';
import { count, DASH, percent } from '../../lib/format';
import { sentences } from '../../lib/text';
import { trans } from '../../lib/translation';
import { hasWord } from '../../model/fleet/filter';
import { withCost } from '../../model/energy-price';
import { energyUnitOf, powerUnit } from '../../model/fleet/units';
import { atLeast, valueText } from '../../model/fleet/metric';
import { isPartial, type Totals } from '../../model/fleet/totals';
import type { FleetAnswers } from '../../model/fleet/reader';
import type { GpuState } from '../../wire';
import { UNITS } from '../../model/unit';
import type { Palette } from '../palette';
import { Trend } from './trend';

export interface SummaryContent {
  totals: Totals | null;
  answers: FleetAnswers;
  filter: string;
  range: string;
  palette: Palette;
}

/** A number with its name. */
class Tile {
  readonly element: HTMLElement;
  private readonly value = h('span', { class: 'gpumon-tile-value' });
  private readonly rest = h('span', { class: 'gpumon-tile-rest' });

  /** With `choose`, it is a button; with `trend`, its past stands behind it. */
  constructor(
    readonly id: string,
    label: string,
    readonly word: string | null,
    choose: ((word: string) => void) | null,
    readonly trend: Trend | null = null,
  ) {
    const content = [
      h('span', { class: 'gpumon-tile-label' }, label),
      h('span', { class: 'gpumon-tile-number' }, this.value, this.rest),
      ...(trend === null ? [] : [trend.element]),
    ];
    const attributes = { class: 'gpumon-tile', 'data-tile': id };
    this.element =
      choose !== null && word !== null
        ? button(attributes, () => choose(word), ...content)
        : h('div', attributes, ...content);
  }

  /** `null` while it is not known yet. */
  update(value: string | null, rest = '', title = ''): void {
    setAttribute(this.element, 'data-pending', value === null ? '' : null);
    setText(this.value, value ?? DASH);
    setText(this.rest, rest);
    setAttribute(this.element, 'title', title === '' ? null : title);
  }

  press(filter: string): void {
    if (this.word !== null && this.element instanceof HTMLButtonElement) {
      setAttribute(this.element, 'aria-pressed', String(hasWord(filter, this.word)));
    }
  }
}

export class Summary {
  readonly element: HTMLElement;
  private readonly tiles: Record<
    'gpus' | 'busy' | 'free' | 'idle' | 'lost' | 'power' | 'energy',
    Tile
  >;

  /** `choose` adds a word to the filter, or takes it away. */
  constructor(choose: (word: string) => void) {
    this.tiles = {
      gpus: new Tile('gpus', trans.__('GPUs'), null, null),
      busy: new Tile(
        'busy',
        trans.__('In use'),
        trans.__('busy'),
        choose,
        new Trend('gpus_held', () => UNITS.count, 'utilization', 'gpus'),
      ),
      free: new Tile('free', trans.__('Free'), trans.__('free'), choose),
      idle: new Tile('idle', trans.__('Idle, but held'), trans.__('idle'), choose),
      lost: new Tile('lost', trans.__('Not responding'), trans.__('lost'), choose),
      power: new Tile(
        'power',
        trans.__('Power'),
        null,
        null,
        new Trend('power.draw_watts', powerUnit, 'power'),
      ),
      energy: new Tile('energy', trans.__('Energy'), null, null),
    };
    const all = Object.values(this.tiles).map(({ element }) => element);
    this.element = h(
      'div',
      { class: 'gpumon-tiles', role: 'group', 'aria-label': trans.__('Summary') },
      ...all,
    );
  }

  update({ totals, answers, filter, range, palette }: SummaryContent): void {
    const { tiles } = this;
    const fleet = answers.fleet.value;
    if (totals === null || fleet === null) {
      Object.values(tiles).forEach((tile) => tile.update(null));
      return;
    }
    const gpus = totals.gpus[0] ?? 0;
    const inState = (state: GpuState): number => totals.states[state]?.[0] ?? 0;
    const of = (state: GpuState): [text: string, share: string] => {
      const many = inState(state);
      return [count(many), gpus === 0 ? '' : percent((many / gpus) * 100)];
    };
    const lost = inState('lost') + inState('unknown');
    const nodes = fleet.nodes.name.length;
    tiles.gpus.update(count(gpus), trans._n('on %1 node', 'on %2 nodes', nodes, count(nodes)));
    tiles.busy.update(...of('busy'));
    tiles.free.update(...of('free'));
    tiles.idle.update(
      ...of('idle'),
      trans.__('Somebody holds memory of them, and no kernel has run for minutes.'),
    );
    tiles.lost.update(
      count(lost),
      '',
      trans.__('GPUs that are lost or hang, and those of unreachable nodes.'),
    );
    setAttribute(tiles.lost.element, 'data-level', lost > 0 ? 'critical' : 'none');
    const watts = totals.readings.power[0] ?? NaN;
    const [power, powerUnitName] = apart(valueText(powerUnit(watts), watts));
    const isPowerPartial = isPartial(totals, 'power');
    tiles.power.update(
      atLeast(power, isPowerPartial),
      powerUnitName,
      fleet.missing['power.draw_watts'] ??
        (isPowerPartial ? trans.__('Some GPUs do not report their power.') : ''),
    );
    const { value: usage, why, isLoading } = answers.usage;
    const joules = usage?.energy_joules ?? null;
    const [energy, unit] = apart(joules === null ? DASH : energyUnitOf(joules).text(joules));
    const isUsagePartial = usage?.state === 'partial';
    tiles.energy.update(
      joules === null
        ? isLoading || (usage === null && why === null)
          ? null
          : DASH
        : atLeast(energy, isUsagePartial),
      joules === null ? '' : trans.__('%1 in %2', withCost(unit, joules, isUsagePartial), range),
      joules === null ? (why ?? '') : isUsagePartial ? sentences(usage.problems) : '',
    );
    Object.values(tiles).forEach((tile) => {
      tile.press(filter);
      tile.trend?.update(answers.history.value, palette);
    });
  }

  dispose(): void {
    Object.values(this.tiles).forEach(({ trend }) => trend?.dispose());
  }
}

/** A value apart from its unit: `4.21` and `MW`. */
function apart(text: string): [value: string, unit: string] {
  const [value = DASH, unit = ''] = text.split('\u00a0');
  return [value, unit];
}
