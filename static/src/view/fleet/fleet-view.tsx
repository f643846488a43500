import type { ComponentChild } from 'preact';

import { h } from '../../lib/dom';
import { duration } from '../../lib/format';
import { remembered } from '../../lib/remembered';
import { adoptStyle } from '../../lib/style';
import { trans } from '../../lib/translation';
import { columnsOf, rowName, type Columns } from '../../model/fleet/columns';
import { spokenRow } from '../../model/fleet/describe';
import { parseFilter, toggledWord, type Filter } from '../../model/fleet/filter';
import { isMeasured, readingText } from '../../model/fleet/metric';
import { nodeOrder } from '../../model/fleet/order';
import type { Reader, Wishes } from '../../model/fleet/reader';
import { RANGES, type FleetShown, type Place } from '../../model/fleet/state';
import { concernsOf, criticalGpus, totalsOf } from '../../model/fleet/totals';
import { ComponentView } from '../component-view';
import type { HeadAction } from '../head-action';
import style from '../style/fleet.css?inline';
import { Controls } from './controls';
import { Detail } from './detail';
import { Events } from './events';
import { FreeView } from './free-view';
import { FleetHead, statusOf } from './head';
import { HeatMap } from './map/heat-map';
import { closedReason, type NodeOpener, type Scene } from './scene';
import { Spoken } from './spoken';
import { Concerns, Summary } from './summary';
import { GpuTable, NodeTable } from './table/tables';
import { Usage } from './usage';

export interface FleetViewOptions {
  title: string;
  actions: () => readonly HeadAction[];
  opener: NodeOpener;
  /** Called when something else is shown. */
  onShown: (shown: FleetShown) => void;
  /** Called before a node opens, so that what is shown can be found again. */
  onLeave: () => void;
  invalidate: () => void;
}

/** From these widths on there is room for one line of controls, and for all columns of a table. */
const WIDE_PX = 720;
const TABLES_PX = 1090;
/** From these widths on there is room for details next to a view; other views have no details. */
const DETAILS_PX: Partial<Record<FleetShown['view'], number>> = {
  map: 940,
  nodes: TABLES_PX + 340,
  gpus: TABLES_PX + 340,
};

let views = 0;

/** The fleet: numbers of all of it, a map or a table, and the details of one GPU. */
export class FleetView extends ComponentView {
  private readonly id = `gpumon-fleet-${(views += 1)}`;
  private readonly spoken: Spoken;
  private pointed: number | null = null;
  private scrollTo: number | null = null;
  private readonly columns = remembered(columnsOf);
  private readonly filter = remembered(parseFilter);
  private readonly matched = remembered((filter: Filter, columns: Columns) =>
    filter.match(columns),
  );
  private readonly order = remembered(nodeOrder);
  private readonly nodesShown = remembered(
    (order: Uint32Array, columns: Columns, matches: Uint8Array | null) =>
      matches === null
        ? order
        : order.filter((node) => columns.rowsOf(node).some((row) => matches[row] === 1)),
  );
  private readonly totals = remembered(totalsOf);
  private readonly allTotals = remembered((columns: Columns) => totalsOf(columns, null));
  private readonly concerns = remembered(concernsOf);
  private readonly critical = remembered(criticalGpus);
  private readonly rowAt = remembered(rowOfPlace);

  constructor(
    private readonly reader: Reader,
    private shown: FleetShown,
    private readonly options: FleetViewOptions,
  ) {
    super(
      h('div', {
        class: 'gpumon gpumon-fleet-view',
        tabindex: '-1',
        'data-testid': 'gpumon-fleet',
      }),
      options.invalidate,
    );
    adoptStyle(style);
    this.spoken = new Spoken(options.invalidate);
    this.element.addEventListener('keydown', (event) => this.onKey(event));
  }

  protected override content(): ComponentChild {
    const { reader, shown, width_px, options, spoken, choose, change } = this;
    const { answers } = reader;
    const now_ms = Date.now();
    const palette = this.currentPalette();
    const status = statusOf(answers);
    const { view, filter } = shown;
    const isWide = width_px >= WIDE_PX;
    this.setAttributes({
      'data-state': status,
      'data-view': view,
      'data-layout': isWide ? 'wide' : 'compact',
      'data-details': width_px >= (DETAILS_PX[view] ?? Infinity) ? 'wide' : 'compact',
    });
    spoken.announceStatus(status);
    const columns = this.known();
    const range = duration(RANGES[shown.range] * 1000);
    const { mistakes } = this.filter(filter);
    const scene = columns === null ? null : this.scene(columns, now_ms, range, palette);
    const all = columns === null ? null : this.allTotals(columns);
    const critical = columns === null ? 0 : this.critical(columns);
    const [gpus = 0] = scene?.totals.gpus ?? [];
    const matching = (scene?.matches ?? null) === null ? null : gpus;
    if (scene !== null) {
      const { selected } = scene;
      spoken.announceMatches(matching);
      spoken.announceSelection(() =>
        selected === null ? trans.__('None selected') : spokenText(scene, selected),
      );
      this.restoreScroll();
    }
    return (
      <>
        <FleetHead
          title={options.title}
          status={status}
          answers={answers}
          now_ms={now_ms}
          critical={critical}
          filter={filter}
          actions={options.actions()}
          choose={choose}
          onRetry={() => reader.retry()}
        />
        {status !== 'error' && (
          <div class="gpumon-fleet-body">
            <Summary
              all={all}
              answers={answers}
              filter={filter}
              range={range}
              palette={palette}
              choose={choose}
            />
            <Controls
              id={this.id}
              shown={shown}
              byGpu={columns?.byGpu ?? true}
              matching={matching === null ? null : [matching, all?.gpus[0] ?? 0]}
              mistakes={mistakes}
              change={change}
              onLeaveFilter={() => this.focusContent()}
            />
            <div
              class="gpumon-fleet-panel"
              id={`${this.id}-panel`}
              role="tabpanel"
              aria-labelledby={`${this.id}-tab-${view}`}
            >
              {scene === null ? (
                <div class="gpumon-fleet-skeleton" aria-hidden="true" />
              ) : (
                this.panel(scene, critical)
              )}
            </div>
          </div>
        )}
        <div class="gpumon-visually-hidden" role="status" aria-live="polite">
          {spoken.text}
        </div>
      </>
    );
  }

  /** Shows what another address says. */
  show(shown: FleetShown): void {
    this.shown = shown;
    this.invalidate();
  }

  /** Scrolls there as soon as there is something to see. */
  scrollWhenReady(top: number): void {
    this.scrollTo = top;
    this.invalidate();
  }

  /** What is shown besides the fleet itself. */
  wishes(): Wishes {
    const { range, view, selected } = this.shown;
    return {
      range_s: RANGES[range],
      usage: true,
      events: view === 'events',
      node: selected?.node ?? null,
    };
  }

  override dispose(): void {
    this.spoken.dispose();
    super.dispose();
  }

  private scene(columns: Columns, now_ms: number, range: string, palette: Scene['palette']): Scene {
    const { shown, options, reader, choose, change } = this;
    const matches = this.matched(this.filter(shown.filter), columns);
    return {
      columns,
      shown,
      matches,
      nodes: this.nodesShown(this.order(columns, shown.sort), columns, matches),
      totals: this.totals(columns, matches),
      selected: this.rowAt(columns, shown.selected),
      answers: reader.answers,
      now_ms,
      range,
      palette,
      isNarrow: this.width_px < WIDE_PX,
      opener: options.opener,
      choose,
      change,
      select: (row, byKeys) => {
        this.spoken.expectSelection(byKeys);
        change({ selected: row === null ? null : placeOfRow(columns, row) });
      },
      openNode: (node) => this.openNode(columns, node),
      leave: options.onLeave,
    };
  }

  private panel(scene: Scene, critical: number): ComponentChild {
    const { columns, shown, selected, nodes, choose } = scene;
    const { view, filter } = shown;
    if (DETAILS_PX[view] === undefined) {
      return <div class="gpumon-fleet-main">{this.view(scene)}</div>;
    }
    const pointed =
      view === 'map' && (this.pointed ?? Infinity) < columns.count ? this.pointed : null;
    return (
      <>
        <div class="gpumon-fleet-main">
          <Concerns
            concerns={this.concerns(columns)}
            critical={critical}
            filter={filter}
            missing={columns.fleet.missing.conditions}
            choose={choose}
          />
          {nodes.length > 0 ? (
            this.view(scene)
          ) : (
            <div class="gpumon-fleet-nothing" data-testid="gpumon-fleet-nothing">
              <p>{trans.__('Nothing matches this filter.')}</p>
              <button
                type="button"
                class="gpumon-chip"
                onClick={() => scene.change({ filter: '' })}
              >
                {trans.__('Clear filter')}
              </button>
            </div>
          )}
        </div>
        <aside class="gpumon-fleet-side" aria-label={trans.__('Details')}>
          <Detail {...scene} row={pointed ?? selected} />
        </aside>
      </>
    );
  }

  private view(scene: Scene): ComponentChild {
    const { view } = scene.shown;
    switch (view) {
      case 'map':
        return (
          <HeatMap
            {...scene}
            pointed={this.pointed}
            onPoint={(row) => {
              if (row !== this.pointed) {
                this.pointed = row;
                this.invalidate();
              }
            }}
          />
        );
      case 'free':
        return <FreeView {...scene} />;
      case 'events':
        return <Events {...scene} />;
      case 'nodes':
      case 'gpus':
        // Some fleets list nodes only.
        return view === 'gpus' && scene.columns.byGpu ? (
          <GpuTable {...scene} />
        ) : (
          <NodeTable {...scene} />
        );
      default:
        return <Usage {...scene} grouping={view} />;
    }
  }

  private known(): Columns | null {
    const { value } = this.reader.answers.fleet;
    return value === null || value.state === 'loading' ? null : this.columns(value);
  }

  private readonly change = (changes: Partial<FleetShown>): void => {
    this.shown = { ...this.shown, ...changes };
    this.options.onShown(this.shown);
    this.invalidate();
  };

  private readonly choose = (word: string): void =>
    this.change({ filter: toggledWord(this.shown.filter, word) });

  private openNode(columns: Columns, node: number): void {
    const reason = closedReason(columns, node);
    if (reason === null) {
      this.options.onLeave();
      this.options.opener.open(columns.fleet.nodes.name[node] ?? '');
    } else {
      const name = columns.nodeNames[node] ?? '';
      this.spoken.text = trans.__('%1 cannot be opened: %2', name, reason);
      this.invalidate();
    }
  }

  private onKey(event: KeyboardEvent): void {
    const { target, key, ctrlKey, metaKey, altKey } = event;
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    if (ctrlKey || metaKey || altKey || isTyping) {
      return;
    }
    if (key === '/') {
      event.preventDefault();
      const filter = this.element.querySelector<HTMLInputElement>('.gpumon-fleet-filter');
      filter?.focus();
      filter?.select();
    } else if (key === 'Escape') {
      if (this.shown.selected !== null) {
        this.change({ selected: null });
      } else if (this.shown.filter !== '') {
        this.change({ filter: '' });
      }
    }
  }

  /** Moves the focus to what the last letters of the filter found, which may not be rendered yet. */
  private focusContent(): void {
    this.render();
    const found = this.element.querySelector<HTMLElement>('.gpumon-fleet-main > [tabindex="0"]');
    (found ?? this.element).focus({ preventScroll: true });
  }

  private restoreScroll(): void {
    if (this.scrollTo !== null) {
      const top = this.scrollTo;
      this.scrollTo = null;
      // The rows and the map have their heights with the next frame.
      requestAnimationFrame(() => window.scrollTo({ top, behavior: 'instant' }));
    }
  }
}

/** Returns the row of a place; `null` if there is none. Rows move, but names do not. */
function rowOfPlace(columns: Columns, place: Place | null): number | null {
  const node = place === null ? -1 : columns.fleet.nodes.name.indexOf(place.node);
  const rows = node < 0 ? [] : [...columns.rowsOf(node)];
  return rows.find((row) => columns.index[row] === place?.gpu) ?? rows[0] ?? null;
}

function placeOfRow(columns: Columns, row: number): Place {
  const node = columns.fleet.nodes.name[columns.node[row] ?? 0] ?? rowName(columns, row);
  return { node, gpu: columns.byGpu ? (columns.index[row] ?? 0) : null };
}

function spokenText({ columns, shown: { metric } }: Scene, row: number): string {
  return spokenRow(columns, row, isMeasured(metric) ? [readingText(columns, metric, row)] : []);
}
