/** All that is known of the GPU that is pointed at or selected, in one place; of all of them, where none is. */

import { h, KeyedRows, setAttribute, setShown, setStyle, setText } from '../../lib/dom';
import { count, DASH } from '../../lib/format';
import { trans } from '../../lib/translation';
import { modelOf, rowName, type Columns, type Measures } from '../../model/fleet/columns';
import { ownerText, stateText } from '../../model/fleet/describe';
import {
  atLeast,
  LOOKS,
  metricLabel,
  missingText,
  readingText,
  shareOf,
  type Measured,
} from '../../model/fleet/metric';
import type { Answered } from '../../model/fleet/reader';
import { isPartial, type Totals } from '../../model/fleet/totals';
import type { Fleet, FleetHistory } from '../../wire';
import { memoryUnit, powerUnit } from '../../model/fleet/units';
import { PERCENT } from '../../model/unit';
import type { Palette } from '../palette';
import { severityIcon } from '../severity-icon';
import { writeCondition } from './table/cells';
import { NodeGpus } from './node-gpus';
import type { NodeLinks } from './node-link';
import { Trend } from './trend';

const MEASURED: readonly Measured[] = ['utilization', 'memory', 'power', 'temperature'];
/** So many have room; the rest is counted. */
const LISTED_MOST = 3;

export interface DetailContent {
  columns: Columns;
  /** `null` for all GPUs that are shown. */
  row: number | null;
  /** Whether all is not all there is. */
  isFiltered: boolean;
  /** Whether it is selected, and not only pointed at. */
  isSelected: boolean;
  totals: Totals;
  history: Answered<FleetHistory>;
  nodeHistory: Answered<FleetHistory>;
  /** The GPUs of the node that is selected, where a fleet has nodes alone. */
  node: Answered<Fleet>;
  range: string;
  palette: Palette;
}

export class Detail {
  readonly element: HTMLElement;
  private readonly name = h('h2', { class: 'gpumon-detail-name' });
  private readonly model = h('p', { class: 'gpumon-detail-model' });
  private readonly state = h('p', { class: 'gpumon-detail-state' });
  private readonly stateText = h('span', {});
  private readonly open = h('span', { class: 'gpumon-detail-open' });
  private readonly close: HTMLElement;
  private readonly readings: ReadonlyMap<Measured, ReadingRow>;
  private readonly holdersLabel = h('dt', {});
  private readonly holders = h('ul', {});
  private readonly holderRows = textRows(this.holders);
  private readonly conditions = h('ul', { class: 'gpumon-detail-conditions' });
  private readonly conditionRows = new KeyedRows(
    this.conditions,
    ({ kind }: { kind: string; severity: number }) => kind,
    () => ({ element: h('li', {}) }),
  );
  private readonly gpus = new NodeGpus();
  private readonly caption = h('p', { class: 'gpumon-detail-caption' });
  private readonly trends = [
    new Trend('utilization.gpu_percent', () => PERCENT, 'utilization'),
    new Trend('memory.used_bytes', memoryUnit, 'memory', 'memory.total_bytes'),
    new Trend('power.draw_watts', powerUnit, 'power'),
  ];
  private readonly trendNote = h('p', { class: 'gpumon-empty' });

  constructor(
    private readonly links: NodeLinks,
    close: HTMLElement,
  ) {
    this.close = close;
    this.state.append(severityIcon(), this.stateText);
    this.readings = new Map(MEASURED.map((metric) => [metric, new ReadingRow(metric)]));
    const list = h(
      'dl',
      { class: 'gpumon-detail-readings' },
      ...[...this.readings.values()].map(({ element }) => element),
    );
    this.element = h(
      'section',
      {
        class: 'gpumon-fleet-detail',
        'data-testid': 'gpumon-fleet-detail',
        'aria-label': trans.__('Details'),
      },
      h(
        'div',
        { class: 'gpumon-detail-head' },
        h('div', {}, this.name, this.model),
        this.open,
        this.close,
      ),
      this.state,
      list,
      h(
        'dl',
        { class: 'gpumon-detail-lists' },
        h('div', {}, this.holdersLabel, h('dd', {}, this.holders)),
        h('div', {}, h('dd', {}, this.conditions)),
      ),
      this.gpus.element,
      h(
        'div',
        { class: 'gpumon-detail-trends' },
        this.caption,
        ...this.trends.map(({ element }) => element),
        this.trendNote,
      ),
    );
  }

  update(content: DetailContent): void {
    const { columns, row, isSelected } = content;
    setAttribute(this.element, 'data-row', row === null ? null : String(row));
    setShown(this.close, isSelected);
    if (row === null) {
      this.showAll(content);
    } else {
      this.showRow(columns, row);
    }
    this.showTrends(content);
    const isNode = row !== null && isSelected && !columns.byGpu;
    this.gpus.update(isNode ? content.node : null);
  }

  dispose(): void {
    this.trends.forEach((trend) => trend.dispose());
  }

  private showAll({ columns, totals, isFiltered }: DetailContent): void {
    setText(this.name, isFiltered ? trans.__('All that match') : trans.__('All GPUs'));
    const gpus = totals.gpus[0] ?? 0;
    setText(this.model, trans._n('%1 GPU', '%2 GPUs', gpus, count(gpus)));
    setAttribute(this.state, 'data-level', 'none');
    setText(this.stateText, trans.__('Point at a GPU for its details'));
    this.open.replaceChildren();
    const { memoryTotal, powerLimit } = totals.readings;
    const memory = readingText(totals, 'memory', 0, memoryUnit(memoryTotal[0] ?? NaN));
    const power = readingText(totals, 'power', 0, powerUnit(powerLimit[0] ?? NaN));
    const hottest = readingText(totals, 'temperature', 0);
    this.showReadings(columns, totals, 0, {
      memory: atLeast(memory, isPartial(totals, 'memoryUsed')),
      power: atLeast(power, isPartial(totals, 'power')),
      temperature: hottest === DASH ? hottest : trans.__('up to %1', hottest),
    });
    setText(this.holdersLabel, trans.__('Held by'));
    this.holderRows.update(
      [columns.fleet.missing.owners ?? trans._n('%1 user', '%1 users', totals.users)],
      writeText,
    );
    this.conditionRows.update([], () => undefined);
  }

  private showRow(columns: Columns, row: number): void {
    const state = stateText(columns, row);
    setText(this.name, rowName(columns, row));
    setText(this.model, modelOf(columns, row) ?? DASH);
    setAttribute(this.model, 'title', modelOf(columns, row));
    setAttribute(this.state, 'data-level', state.level);
    setText(this.stateText, state.reason === '' ? state.text : `${state.text}: ${state.reason}`);
    const link = this.links.of(columns, columns.node[row] ?? 0);
    if (this.open.firstChild !== link) {
      this.open.replaceChildren(link);
    }
    const { missing } = columns.fleet;
    this.showReadings(columns, columns, row);
    const owners = columns.ownersOf(row).flatMap((place) => columns.owner(place) ?? []);
    const processes = columns.processes[row] ?? NaN;
    setText(this.holdersLabel, trans.__('Held by'));
    const held = listed(owners.map(ownerText));
    const unknown = missing.owners ?? missing.processes;
    this.holderRows.update(
      held.length > 0
        ? held
        : [
            processes > 0
              ? trans._n('%1 process', '%1 processes', processes)
              : processes === 0
                ? trans.__('nobody')
                : (unknown ?? DASH),
          ],
      writeText,
    );
    // That it is idle while it is held, its state says.
    const conditions = columns
      .conditionsOf(row)
      .filter(({ kind }) => kind !== 'held_idle' || columns.state[row] !== 'idle')
      .sort((a, b) => b.severity - a.severity);
    this.conditionRows.update(conditions.slice(0, LISTED_MOST), ({ element }, condition) =>
      writeCondition(element, condition),
    );
  }

  /** `texts` replace the usual texts of readings. */
  private showReadings(
    columns: Columns,
    measures: Measures,
    row: number,
    texts: Partial<Record<Measured, string>> = {},
  ): void {
    for (const [metric, reading] of this.readings) {
      const text = texts[metric] ?? readingText(measures, metric, row);
      const isHottest = metric === 'temperature' && measures !== columns;
      const share = isHottest ? NaN : shareOf(measures, metric, row);
      reading.update(text, share, missingText(columns, metric));
    }
  }

  private showTrends({
    columns,
    row,
    isSelected,
    history,
    nodeHistory,
    range,
    palette,
  }: DetailContent): void {
    const ofNode = row !== null && isSelected;
    const { value, why } = ofNode ? nodeHistory : history;
    const name = row === null ? '' : (columns.nodeNames[columns.node[row] ?? 0] ?? '');
    setText(
      this.caption,
      ofNode ? trans.__('%1, last %2', name, range) : trans.__('All GPUs, last %1', range),
    );
    const drawn = this.trends.map((trend) => trend.update(value, palette));
    const note =
      why ?? (value === null || drawn.includes(true) ? '' : trans.__('No history of this time.'));
    this.trends.forEach(({ element }) => setShown(element, note === ''));
    setShown(this.trendNote, note !== '');
    setText(this.trendNote, note);
  }
}

class ReadingRow {
  readonly element: HTMLElement;
  private readonly fill = h('span', {});
  private readonly meter = h(
    'span',
    { class: 'gpumon-detail-meter', 'aria-hidden': 'true' },
    this.fill,
  );
  private readonly value = h('span', { class: 'gpumon-detail-value' });

  constructor(metric: Measured) {
    setStyle(this.fill, '--_color', `var(--gpumon-${LOOKS[metric].color})`);
    this.element = h(
      'div',
      { 'data-reading-of': metric },
      h('dt', {}, metricLabel(metric)),
      h('dd', {}, this.meter, this.value),
    );
  }

  update(text: string, share: number, missing: string | undefined): void {
    setText(this.value, text);
    setAttribute(this.element, 'title', text === DASH ? (missing ?? trans.__('no reading')) : null);
    setAttribute(this.meter, 'data-empty', Number.isNaN(share) ? '' : null);
    setStyle(this.fill, 'width', `${Number.isNaN(share) ? 0 : Math.min(100, share * 100)}%`);
  }
}

function textRows(parent: HTMLElement): KeyedRows<string, { element: HTMLElement }> {
  return new KeyedRows(
    parent,
    (text) => text,
    (): { element: HTMLElement } => ({ element: h('li', {}) }),
  );
}

function writeText({ element }: { element: HTMLElement }, text: string): void {
  setText(element, text);
}

/** The first of them, and how many more there are. */
function listed(texts: readonly string[]): string[] {
  const unique = [...new Set(texts)];
  return unique.length <= LISTED_MOST
    ? unique
    : [
        ...unique.slice(0, LISTED_MOST - 1),
        trans.__('and %1 more', unique.length - LISTED_MOST + 1),
      ];
}
