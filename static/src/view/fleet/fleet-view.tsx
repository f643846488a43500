import type { ComponentChild } from 'preact';

import { createElement, addStyleSheetOnce } from '../../lib/dom';
import { formatCount, formatDuration } from '../../lib/format';
import { memoizeLast } from '../../lib/memoize';
import { trans } from '../../lib/translation';
import { NO_FLEET, rowName, type Columns } from '../../model/fleet/columns';
import { describeRow } from '../../model/fleet/describe';
import { toggleWord } from '../../model/fleet/filter';
import { isNumeric, readingText } from '../../model/fleet/metric';
import { nodeOrder } from '../../model/fleet/order';
import type { FleetReader, RequestedData } from '../../model/fleet/reader';
import { RANGES, type FleetState, type RowId } from '../../model/fleet/state';
import { ComponentView } from '../component-view';
import type { HeadAction } from '../menu';
import style from '../style/fleet.css?inline';
import { Controls } from './controls';
import { Detail } from './detail';
import { Events } from './events';
import { FreeView } from './free-view';
import { Concerns, FleetHead, statusOf, statusText, Summary, type FleetStatus } from './head';
import { HeatMap } from './map/heat-map';
import { RowTable } from './rows';
import {
  explainUnopenableNode,
  computeFilteredFleet,
  computeFleetValues,
  type NodeOpener,
  type Scene,
} from './scene';
import { Usage } from './usage';

export interface FleetViewOptions {
  title: string;
  /** Returns further actions for the header. Called for each frame. */
  actions?: () => readonly HeadAction[];
  opener: NodeOpener;
  /** Called with a new state. */
  onShown: (shown: FleetState) => void;
  /** Called before a node opens, so that the current state can be restored. */
  onLeave: () => void;
  invalidate: () => void;
}

/** The minimum width at which controls are side by side and table rows have a single line. */
const WIDE_PX = 760;
/** The minimum widths at which details are shown next to a view. Other views have no details. */
const DETAILS_PX: Partial<Record<FleetState['view'], number>> = {
  map: 940,
  nodes: 1600,
  gpus: 1600,
};
/** The time without typing after which the result is announced. */
const PAUSE_MS = 600;

let views = 0;

/** The view of a fleet: a summary, a map or a table, and the details of one GPU. */
export class FleetView extends ComponentView {
  private readonly id = `gpumon-fleet-${(views += 1)}`;
  private readonly spoken: Announcements;
  private pointed: number | null = null;
  private scrollTo: number | null = null;
  private readonly known = memoizeLast(computeFleetValues);
  private readonly order = memoizeLast(nodeOrder);
  private readonly found = memoizeLast(computeFilteredFleet);
  private readonly rowAt = memoizeLast(findRow);

  constructor(
    private readonly reader: FleetReader,
    private shown: FleetState,
    private readonly options: FleetViewOptions,
  ) {
    const attributes = { class: 'gpumon gpumon-fleet-view', tabindex: '-1' };
    super(
      createElement('div', { ...attributes, 'data-testid': 'gpumon-fleet' }),
      options.invalidate,
    );
    addStyleSheetOnce(style);
    this.spoken = new Announcements(options.invalidate);
    this.element.addEventListener('keydown', (event) => this.onKey(event));
  }

  protected override renderContent(): ComponentChild {
    const { reader, shown, width_px, options, spoken, id } = this;
    const { view } = shown;
    const status = statusOf(reader.answers);
    const scene = this.makeScene();
    const { matches, totals } = scene;
    const isWide = width_px >= (DETAILS_PX[view] ?? Infinity);
    this.setAttributes({
      'data-state': status,
      'data-view': view,
      'data-layout': scene.isNarrow ? 'compact' : 'wide',
      'data-details': isWide ? 'wide' : 'compact',
    });
    spoken.announceStatus(status, statusText(status, scene));
    if (scene.isKnown) {
      spoken.announceMatches(matches === null ? null : (totals.gpus[0] ?? 0));
      this.restoreScroll();
    }
    return (
      <>
        <FleetHead
          {...scene}
          title={options.title}
          status={status}
          actions={options.actions?.() ?? []}
          onRetry={() => reader.retry()}
        />
        {status !== 'error' && (
          <div class="gpumon-fleet-body">
            <Summary {...scene} />
            <Controls
              {...scene}
              // Next to tables of current values, the time range applies only to the trends. Narrow
              // screens have no trends there, and therefore need no time range.
              hasRange={!['nodes', 'gpus', 'free'].includes(view) || isWide}
              onLeaveFilter={() => this.focusContent()}
            />
            <div
              class="gpumon-fleet-panel"
              id={`${id}-panel`}
              role="tabpanel"
              aria-labelledby={`${id}-tab-${view}`}
            >
              <Panel {...scene} />
            </div>
          </div>
        )}
        <div class="gpumon-visually-hidden" role="status" aria-live="polite">
          {spoken.text}
        </div>
      </>
    );
  }

  /** Shows another state. */
  show(shown: FleetState): void {
    this.shown = shown;
    this.invalidate();
  }

  /** Scrolls to a position as soon as the content is loaded. */
  scrollWhenReady(top: number): void {
    this.scrollTo = top;
    this.invalidate();
  }

  /** Returns the data that the view needs in addition to the fleet itself. */
  listRequestedData(): RequestedData {
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

  private makeScene(): Scene {
    const { shown, options, pointed } = this;
    const { answers } = this.reader;
    const { value } = answers.fleet;
    const isKnown = value !== null && value.state !== 'loading';
    const known = this.known(isKnown ? value : NO_FLEET);
    const { columns } = known;
    const change = (changes: Partial<FleetState>): void => this.change(changes);
    return {
      ...known,
      ...this.found(columns, this.order(columns, shown.sort), shown.filter),
      id: this.id,
      shown,
      isKnown,
      answers,
      now_ms: Date.now(),
      range: formatDuration(RANGES[shown.range] * 1000),
      palette: this.currentPalette(),
      isNarrow: this.width_px < WIDE_PX,
      selected: this.rowAt(columns, shown.selected),
      pointed: shown.view === 'map' && (pointed ?? Infinity) < columns.count ? pointed : null,
      opener: options.opener,
      change,
      choose: (word) => change({ filter: toggleWord(this.shown.filter, word) }),
      select: (row, byKeys) => {
        if (byKeys) {
          // Later changes of the row's values are not announced.
          const { metric } = shown;
          this.spoken.text =
            row === null
              ? trans.__('None selected')
              : describeRow(
                  columns,
                  row,
                  isNumeric(metric) ? [readingText(columns, metric, row)] : [],
                );
        }
        change({ selected: row === null ? null : rowIdOf(columns, row) });
      },
      point: (row) => {
        if (row !== this.pointed) {
          this.pointed = row;
          this.invalidate();
        }
      },
      openNode: (node) => this.openNode(columns, node),
      leave: options.onLeave,
    };
  }

  private openNode(columns: Columns, node: number): void {
    const reason = explainUnopenableNode(columns, node);
    if (reason === null) {
      this.options.onLeave();
      this.options.opener.open(columns.fleet.nodes.name[node] ?? '');
    } else {
      const name = columns.nodeNames[node] ?? '';
      this.spoken.text = trans.__('%1 cannot be opened: %2', name, reason);
      this.invalidate();
    }
  }

  private change(changes: Partial<FleetState>): void {
    this.shown = { ...this.shown, ...changes };
    this.options.onShown(this.shown);
    this.invalidate();
  }

  private onKey(event: KeyboardEvent): void {
    const { target, key } = event;
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping) {
      return;
    }
    if (key === '/') {
      event.preventDefault();
      const filter = this.element.querySelector<HTMLInputElement>('.gpumon-fleet-filter');
      filter?.focus();
      filter?.select();
    } else if (key === 'Escape') {
      this.change(this.shown.selected === null ? { filter: '' } : { selected: null });
    }
  }

  /**
   * Focuses the rows that match the filter. The view is rendered first, because the rows may not be
   * rendered yet.
   */
  private focusContent(): void {
    this.render();
    const found = this.element.querySelector<HTMLElement>('.gpumon-fleet-main > [tabindex="0"]');
    (found ?? this.element).focus({ preventScroll: true });
  }

  private restoreScroll(): void {
    const top = this.scrollTo;
    this.scrollTo = null;
    if (top !== null) {
      // The rows and the map get their final heights only in the next frame.
      requestAnimationFrame(() => window.scrollTo({ top, behavior: 'instant' }));
    }
  }
}

/** The selected view, and the details of a GPU next to it. */
function Panel(scene: Scene) {
  const { view } = scene.shown;
  if (!scene.isKnown) {
    return <div class="gpumon-fleet-skeleton" aria-hidden="true" />;
  }
  const hasDetails = DETAILS_PX[view] !== undefined;
  return (
    <>
      <div class="gpumon-fleet-main">
        {hasDetails && <Concerns {...scene} />}
        {hasDetails && scene.nodes.length === 0 ? (
          <div class="gpumon-fleet-empty" data-testid="gpumon-fleet-nothing">
            <p>{trans.__('Nothing matches this filter.')}</p>
            <button type="button" class="gpumon-chip" onClick={() => scene.change({ filter: '' })}>
              {trans.__('Clear filter')}
            </button>
          </div>
        ) : (
          <SelectedView {...scene} />
        )}
      </div>
      {hasDetails && (
        <aside class="gpumon-fleet-side" aria-label={trans.__('Details')}>
          <Detail {...scene} />
        </aside>
      )}
    </>
  );
}

function SelectedView(scene: Scene) {
  const { view } = scene.shown;
  switch (view) {
    case 'map':
      return <HeatMap {...scene} />;
    case 'nodes':
    case 'gpus':
      // If a fleet only lists nodes, the table of nodes is shown.
      return <RowTable {...scene} byNode={view === 'nodes' || !scene.columns.byGpu} />;
    case 'free':
      return <FreeView {...scene} />;
    case 'events':
      return <Events {...scene} />;
    default:
      return <Usage {...scene} grouping={view} />;
  }
}

/**
 * Returns the row of a GPU or node, or `null` if there is none. Row numbers change, but names do
 * not.
 */
function findRow(columns: Columns, place: RowId | null): number | null {
  const node = place === null ? -1 : columns.fleet.nodes.name.indexOf(place.node);
  const rows = node < 0 ? [] : [...columns.rowsOf(node)];
  return rows.find((row) => columns.index[row] === place?.gpu) ?? rows[0] ?? null;
}

function rowIdOf(columns: Columns, row: number): RowId {
  const node = columns.fleet.nodes.name[columns.node[row] ?? 0] ?? rowName(columns, row);
  return { node, gpu: columns.byGpu ? (columns.index[row] ?? 0) : null };
}

/**
 * The text for screen readers, which announces changes of the fleet's status and results of key
 * presses.
 */
class Announcements {
  text = '';
  private status: FleetStatus | null = null;
  private matches: number | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly changed: () => void) {}

  announceStatus(status: FleetStatus, text: string): void {
    if (status !== this.status) {
      this.status = status;
      this.text = trans.__('Fleet: %1', text);
    }
  }

  /** Announces the number of GPUs that match the filter; `null` if there is no filter. */
  announceMatches(gpus: number | null): void {
    if (gpus !== this.matches) {
      this.matches = gpus;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        if (gpus !== null) {
          this.text = trans._n('%1 GPU matches', '%2 GPUs match', gpus, formatCount(gpus));
          this.changed();
        }
      }, PAUSE_MS);
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
  }
}
