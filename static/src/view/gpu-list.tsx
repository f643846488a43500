/**
 * The list of all GPUs: a few as cards, six or more as rows that can be filtered, sorted and
 * opened.
 */

import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { lazyTexts, trans } from '../lib/translation';
import type { Alert } from '../model/alerts';
import type { GpuState } from '../model/gpu';
import { gpuFilterSuggestions, type Order, type SortKey } from '../model/gpu-list';
import type { HolderRow, ListRow } from '../model/holders';
import { GpuCard, type CardContext } from './gpu-card';

/**
 * The minimum number of GPUs that are shown as rows. With that many GPUs, comparing them is more
 * important than their details.
 */
export const MIN_GPUS_FOR_ROWS = 6;

/** The column headers of rows. */
const HEADS = lazyTexts((): Record<SortKey, string> => ({
  index: trans.__('GPU'),
  use: trans.__('Util.'),
  mem: trans.__('Memory'),
  temp: trans.__('Temp.'),
  power: trans.__('Power'),
  state: trans.__('State'),
}));

let lists = 0;

interface GpuListProps {
  /** The displayed GPUs in order. */
  gpus: readonly GpuState[];
  /** The total number of GPUs, including those that are not displayed. */
  count: number;
  rows: readonly ListRow[];
  holders: ReadonlyMap<number, readonly HolderRow[]>;
  alerts: ReadonlyMap<number | null, readonly Alert[]>;
  context: CardContext;
  /** Whether cards are initially open. */
  openByDefault: boolean;
  hasSameName: boolean;
  filter: string;
  onFilter: (typed: string) => void;
  order: Order | null;
  onSort: (by: SortKey) => void;
}

export function GpuList(props: GpuListProps) {
  const { gpus, count, holders, alerts, context, openByDefault, onFilter } = props;
  const { layout } = context;
  const [id] = useState(() => `gpumon-${(lists += 1)}`);
  const [opened, setOpened] = useState<ReadonlyMap<number, boolean>>(new Map());
  const list = useRef<HTMLDivElement>(null);
  // If the focused row moves in the list, the browser removes the focus, so the focus is restored.
  const focused = document.activeElement;
  useLayoutEffect(() => {
    const isLost = document.activeElement === document.body;
    if (isLost && focused instanceof HTMLElement && list.current?.contains(focused) === true) {
      focused.focus({ preventScroll: true });
    }
  });
  const isOpen = ({ index }: GpuState): boolean => opened.get(index) ?? openByDefault;
  return (
    <div
      class="gpumon-gpu-list"
      data-rows={layout === null ? undefined : layout.isColumns ? 'columns' : 'one'}
      data-same-name={props.hasSameName ? '' : undefined}
      style={layout?.style ?? {}}
    >
      {layout !== null && (
        <>
          <FilterField {...props} id={`${id}-filter`} />
          <RowHeads
            {...props}
            layout={layout}
            columns={countUsedColumns(gpus, layout.columns, isOpen)}
          />
        </>
      )}
      <div class="gpumon-gpus" ref={list}>
        {gpus.map((gpu) => (
          <GpuCard
            key={gpu.index}
            gpu={gpu}
            rows={holders.get(gpu.index) ?? []}
            alerts={alerts.get(gpu.index) ?? []}
            context={context}
            isOpen={isOpen(gpu)}
            id={`${id}-gpu-${gpu.index}`}
            onToggle={() =>
              setOpened((before) =>
                new Map(before).set(gpu.index, !(before.get(gpu.index) ?? openByDefault)),
              )
            }
          />
        ))}
      </div>
      {gpus.length === 0 && count > 0 && (
        <p class="gpumon-empty">
          {trans.__('No GPU matches the filter.')}{' '}
          <button type="button" class="gpumon-chip" onClick={() => onFilter('')}>
            {trans.__('Show all GPUs')}
          </button>
        </p>
      )}
    </div>
  );
}

/** Returns the number of columns that are needed for the rows above the first open card. */
function countUsedColumns(
  gpus: readonly GpuState[],
  columns: number,
  isOpen: (gpu: GpuState) => boolean,
): number {
  const open = gpus.findIndex(isOpen);
  const rows = Math.max(1, open < 0 ? gpus.length : open);
  return Math.ceil(rows / Math.ceil(rows / columns));
}

/** The filter field, with suggestions for words that match GPUs and processes. */
function FilterField({ id, gpus, count, rows, filter, onFilter }: GpuListProps & { id: string }) {
  const [suggested, setSuggested] = useState<readonly string[]>([]);
  return (
    <div class="gpumon-filter" role="search">
      <input
        class="gpumon-filter-text"
        type="search"
        list={id}
        placeholder={trans.__('Filter GPUs')}
        aria-label={trans.__('Filter GPUs')}
        title={trans.__(
          'All words must match: busy, idle, critical, warning, mine, user, notebook, program, PID, GPU',
        )}
        value={filter}
        onFocus={() => setSuggested(gpuFilterSuggestions(rows))}
        onInput={({ currentTarget }) => onFilter(currentTarget.value)}
      />
      <datalist id={id}>
        {suggested.map((value) => (
          <option key={value} value={value} />
        ))}
      </datalist>
      {filter.trim() !== '' && (
        <span class="gpumon-filter-count" data-testid="gpumon-filter-count">
          {trans.__('%1 of %2', gpus.length, count)}
        </span>
      )}
    </div>
  );
}

/**
 * The column headers. A click on a header sorts the rows. The headers are repeated above each
 * column of rows.
 */
function RowHeads({
  layout,
  columns,
  order,
  onSort,
}: GpuListProps & { layout: NonNullable<CardContext['layout']>; columns: number }) {
  return (
    <div class="gpumon-row-heads" role="table" aria-label={trans.__('Sort GPUs')}>
      {Array.from({ length: columns }, (_, column) => (
        // Screen readers only need the first of the repeated headers.
        <div key={column} role="row" aria-hidden={column > 0 ? 'true' : undefined}>
          {layout.heads.map((place) => (
            <span
              key={place}
              role="columnheader"
              data-place={place}
              aria-sort={order?.by === place ? order.direction : 'none'}
              style={{ gridArea: place }}
            >
              <button
                type="button"
                title={trans.__('Sort by %1', HEADS()[place])}
                tabIndex={column > 0 ? -1 : undefined}
                onClick={() => onSort(place)}
              >
                {HEADS()[place]}
              </button>
            </span>
          ))}
        </div>
      ))}
    </div>
  );
}
