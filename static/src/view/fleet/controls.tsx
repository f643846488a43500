import { useLayoutEffect, useRef } from 'preact/hooks';

import { formatCount, formatDuration } from '../../lib/format';
import { observeWidth } from '../../lib/dom';
import { lazyTexts, trans } from '../../lib/translation';
import { fleetFilterSuggestions } from '../../model/fleet/filter';
import { METRICS, metricLabel } from '../../model/fleet/metric';
import type { SortKey } from '../../model/fleet/order';
import { RANGES, VIEWS, type FleetViewName, type RangeName } from '../../model/fleet/state';
import type { Scene } from './scene';

const LABELS = lazyTexts((): Record<FleetViewName, string> => ({
  map: trans.__('Map'),
  nodes: trans.__('Nodes'),
  gpus: trans.__('GPUs'),
  users: trans.__('Users'),
  jobs: trans.__('Jobs'),
  notebooks: trans.__('Notebooks'),
  namespaces: trans.__('Namespaces'),
  free: trans.__('Find free GPUs'),
  events: trans.__('Events'),
}));

/** The sort orders of the map. Tables are sorted by clicks on their columns instead. */
const SORTS = lazyTexts((): Partial<Record<SortKey, string>> => ({
  worst: trans.__('Worst first'),
  name: trans.__('By name'),
  utilization: trans.__('Highest utilization'),
  memory: trans.__('Most memory used'),
  power: trans.__('Highest power'),
  temperature: trans.__('Hottest'),
  idle: trans.__('Longest idle'),
}));

interface ControlsProps extends Scene {
  /** Whether the view has a time range. */
  hasRange: boolean;
  /** Moves the focus from the filter to the matching rows. */
  onLeaveFilter: () => void;
}

/** The controls for view, metric, order, time range and filter. */
export function Controls(props: ControlsProps) {
  const { shown, isKnown, matches, totals, all, mistakes, change } = props;
  const { key } = shown.sort;
  return (
    <div class="gpumon-fleet-controls">
      <div class="gpumon-fleet-line">
        <Tabs {...props} />
        {props.hasRange && (
          <Choice
            label={trans.__('Time range')}
            all={Object.keys(RANGES) as RangeName[]}
            chosen={shown.range}
            textOf={(range) => formatDuration(RANGES[range] * 1000)}
            onChange={(range) => change({ range })}
          />
        )}
      </div>
      <div class="gpumon-fleet-line">
        <div class="gpumon-fleet-search" role="search">
          <FilterField {...props} />
          {isKnown && matches !== null && (
            <span class="gpumon-fleet-count" data-testid="gpumon-fleet-count">
              {trans.__(
                '%1 of %2',
                formatCount(totals.gpus[0] ?? 0),
                formatCount(all.gpus[0] ?? 0),
              )}
            </span>
          )}
        </div>
        {shown.view === 'map' && (
          <>
            <Choice
              label={trans.__('Metric')}
              all={METRICS}
              chosen={shown.metric}
              textOf={metricLabel}
              onChange={(metric) => change({ metric })}
            />
            <select
              class="gpumon-fleet-select"
              aria-label={trans.__('Order')}
              // The options do not include the sort orders that only tables have.
              value={key in SORTS() ? key : ''}
              onChange={({ currentTarget: { value } }) =>
                change({ sort: { key: value as SortKey, reversed: false } })
              }
            >
              {Object.entries(SORTS()).map(([sort, text]) => (
                <option key={sort} value={sort}>
                  {text}
                </option>
              ))}
            </select>
          </>
        )}
      </div>
      {mistakes.length > 0 && (
        <p class="gpumon-fleet-mistake" role="alert">
          {mistakes.join(' ')}
        </p>
      )}
    </div>
  );
}

function Tabs({ id, shown, columns, change }: Scene) {
  const views = VIEWS.filter((view) => columns.byGpu || view !== 'gpus');
  // The filter is cleared before free GPUs are shown, because a filter from another view, for
  // example for a user, would hide all of them.
  const showView = (view: FleetViewName): void =>
    change(view === 'free' && shown.view !== 'free' ? { view, filter: '' } : { view });
  const tabs = useRef<HTMLDivElement>(null);
  useFadedEdges(tabs, views.join());
  useLayoutEffect(() => {
    const chosen = tabs.current?.querySelector<HTMLElement>('[aria-selected=true]');
    if (chosen && tabs.current !== null) {
      // The tabs are scrolled by setting `scrollLeft`, because `scrollIntoView` would also scroll
      // the page.
      const { offsetLeft, offsetWidth } = chosen;
      tabs.current.scrollLeft = offsetLeft + offsetWidth / 2 - tabs.current.clientWidth / 2;
    }
  }, [shown.view]);
  return (
    <div
      ref={tabs}
      class="gpumon-fleet-tabs"
      role="tablist"
      aria-label={trans.__('Views')}
      onKeyDown={(event) => {
        const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
        const place = (views.indexOf(shown.view) + step + views.length) % views.length;
        const tab = event.currentTarget.children[place];
        if (step !== 0 && tab instanceof HTMLElement) {
          event.preventDefault();
          tab.click();
          tab.focus();
        }
      }}
    >
      {views.map((view) => (
        <button
          type="button"
          key={view}
          class="gpumon-fleet-tab"
          role="tab"
          id={`${id}-tab-${view}`}
          aria-controls={`${id}-panel`}
          aria-selected={view === shown.view}
          tabIndex={view === shown.view ? 0 : -1}
          data-view={view}
          onClick={() => showView(view)}
        >
          {LABELS()[view]}
        </button>
      ))}
    </div>
  );
}

/**
 * Marks the edges of a scrollable element beyond which there is more content. The style sheet fades
 * these edges. The edges are updated when `content` changes.
 */
export function useFadedEdges(
  ref: { readonly current: HTMLElement | null },
  content: string,
): void {
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null) {
      return undefined;
    }
    const update = (): void => {
      const { scrollLeft, scrollWidth, clientWidth } = element;
      // In right-to-left text, `scrollLeft` is negative.
      const left =
        getComputedStyle(element).direction === 'rtl'
          ? scrollWidth - clientWidth + scrollLeft
          : scrollLeft;
      element.toggleAttribute('data-more-left', left > 1);
      element.toggleAttribute('data-more-right', left < scrollWidth - clientWidth - 1);
    };
    update();
    element.addEventListener('scroll', update, { passive: true });
    const stop = observeWidth(element, update);
    return () => {
      element.removeEventListener('scroll', update);
      stop();
    };
  }, [content]);
}

function FilterField({ id, shown, change, onLeaveFilter }: ControlsProps) {
  return (
    <>
      <input
        class="gpumon-fleet-filter"
        type="search"
        list={`${id}-words`}
        placeholder={trans.__('Filter by node, GPU, user, job…')}
        aria-label={trans.__('Filter GPUs')}
        aria-keyshortcuts="/"
        autocomplete="off"
        spellcheck={false}
        title={[
          trans.__('All words must match: names of nodes, GPUs, users, jobs and namespaces;'),
          trans.__('busy, idle, free, held, lost, critical, hot;'),
          trans.__(
            'user:ana, job:88123; memory>80GiB, power<100W; a minus before a word excludes.',
          ),
        ].join('\n')}
        value={shown.filter}
        onInput={({ currentTarget }) => change({ filter: currentTarget.value })}
        onKeyDown={(event) => {
          const { key, currentTarget } = event;
          if (key === 'Enter' || (key === 'Escape' && currentTarget.value === '')) {
            event.preventDefault();
            event.stopPropagation();
            onLeaveFilter();
          }
        }}
      />
      <datalist id={`${id}-words`}>
        {fleetFilterSuggestions().map((word) => (
          <option key={word} value={word} />
        ))}
      </datalist>
    </>
  );
}

/** A group of buttons with one selected button. */
function Choice<T extends string>({
  label,
  all,
  chosen,
  textOf,
  onChange,
}: {
  label: string;
  all: readonly T[];
  chosen: T;
  textOf: (one: T) => string;
  onChange: (one: T) => void;
}) {
  return (
    <div class="gpumon-fleet-group" role="group" aria-label={label}>
      {all.map((one) => (
        <button
          type="button"
          key={one}
          class="gpumon-fleet-chip"
          aria-pressed={one === chosen}
          onClick={() => onChange(one)}
        >
          {textOf(one)}
        </button>
      ))}
    </div>
  );
}
