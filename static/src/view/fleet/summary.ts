/** The fleet in a line of numbers; those that count GPUs choose them. */

import { button, h, setAttribute, setShown, setText } from '../../lib/dom';
import { count, DASH, kilowattHours, percent, significant } from '../../lib/format';
import { trans } from '../../lib/translation';
import { USE } from '../../model/fleet/columns';
import { hasWord } from '../../model/fleet/filter';
import type { Totals } from '../../model/fleet/totals';
import type { FleetAnswers } from '../../model/fleet/reader';
import { UNITS } from '../../model/unit';
import type { Palette } from '../palette';
import { COUNT, Trend } from './trend';

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
  private readonly tiles: Record<'gpus' | 'busy' | 'free' | 'idle' | 'lost' | 'power' | 'energy', Tile>;

  /** `choose` adds a word to the filter, or takes it away. */
  constructor(choose: (word: string) => void) {
    const trendOf = (id: string, of: string | null, color: 'utilization' | 'power'): Trend =>
      new Trend(id, color === 'power' ? UNITS.watts : COUNT, color, of);
    this.tiles = {
      gpus: new Tile('gpus', trans.__('GPUs'), null, null),
      busy: new Tile('busy', trans.__('In use'), trans.__('busy'), choose, trendOf('gpus_held', 'gpus', 'utilization')),
      free: new Tile('free', trans.__('Free'), trans.__('free'), choose),
      idle: new Tile('idle', trans.__('Idle, but held'), trans.__('idle'), choose),
      lost: new Tile('lost', trans.__('Not responding'), trans.__('lost'), choose),
      power: new Tile('power', trans.__('Power'), null, null, trendOf('power.draw_watts', null, 'power')),
      energy: new Tile('energy', trans.__('Energy'), null, null),
    };
    const all = Object.values(this.tiles).map(({ element }) => element);
    this.element = h('div', { class: 'gpumon-tiles', role: 'group', 'aria-label': trans.__('Summary') }, ...all);
  }

  update({ totals, answers, filter, range, palette }: SummaryContent): void {
    const { tiles } = this;
    const fleet = answers.fleet.value;
    if (totals === null || fleet === null) {
      Object.values(tiles).forEach((tile) => tile.update(null));
      return;
    }
    const { gpus, used } = totals;
    const of = (use: number): [text: string, share: string] => {
      const many = used[use] ?? 0;
      return [count(many), gpus === 0 ? '' : percent((many / gpus) * 100)];
    };
    const lost = (used[USE.lost] ?? 0) + (used[USE.unknown] ?? 0);
    const nodes = fleet.nodes.name.length;
    tiles.gpus.update(count(gpus), trans._n('on %1 node', 'on %2 nodes', nodes, count(nodes)));
    tiles.busy.update(...of(USE.busy));
    tiles.free.update(...of(USE.free));
    tiles.idle.update(...of(USE.idle), trans.__('Somebody holds memory of them, and no kernel has run for minutes.'));
    tiles.lost.update(count(lost), '', trans.__('GPUs that are lost or hang, and those of unreachable nodes.'));
    setAttribute(tiles.lost.element, 'data-level', lost > 0 ? 'critical' : 'none');
    tiles.power.update(...powerText(totals.power), fleet.missing['power.draw_watts'] ?? '');
    const { value: usage, why, isLoading } = answers.usage;
    const joules = usage?.energy_joules ?? null;
    tiles.energy.update(
      joules === null ? (isLoading || (usage === null && why === null) ? null : DASH) : energyText(joules)[0],
      joules === null ? '' : trans.__('%1 in %2', energyText(joules)[1], range),
      joules === null ? (why ?? '') : '',
    );
    Object.values(tiles).forEach((tile) => {
      tile.press(filter);
      tile.trend?.update(answers.history.value, palette);
      if (tile.trend !== null) {
        setShown(tile.trend.element, true);
      }
    });
  }

  dispose(): void {
    Object.values(this.tiles).forEach(({ trend }) => trend?.dispose());
  }
}

/** `4.21` and `MW`: that of a fleet is no number of watts that anybody reads. */
export function powerText(watts: number): [value: string, unit: string] {
  if (Number.isNaN(watts)) {
    return [DASH, ''];
  }
  const [scale, unit] = watts >= 999_500 ? [1e6, 'MW'] : watts >= 9995 ? [1e3, 'kW'] : [1, 'W'];
  return [scale === 1 ? count(watts) : significant(watts / scale), unit];
}

/** `101` and `MWh`. */
export function energyText(joules: number): [value: string, unit: string] {
  const wattHours = joules / 3600;
  const [scale, unit] = wattHours >= 999.5e6 ? [1e9, 'GWh'] : wattHours >= 999_500 ? [1e6, 'MWh'] : [1e3, 'kWh'];
  return scale === 1e3
    ? [kilowattHours(joules).split('\u00a0')[0] ?? '', unit]
    : [significant(wattHours / scale), unit];
}
