import { Fragment, type ComponentChild, type ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { formatDuration, formatTimeWithDateUnlessToday, formatTimeOfDay } from '../../lib/format';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import {
  hasSeparateGpuCharts,
  keepValidCharts,
  toggleGpuSelection,
  isPaused,
  displayedRange,
  resume,
  SPANS_MIN,
  togglePaused,
  zoomTo,
  type DashboardState,
} from '../../model/dashboard/state';
import { chartGroups } from '../../model/dashboard/kinds';
import type { GpuState } from '../../model/gpu';
import { vendorSpecificTitle } from '../../model/vendor-words';
import { makeRequestInit, readJsonResponse, type Request } from '../../model/request';
import { Menu } from '../menu';
import type { ChangeState } from './plot-content';

export type ToolbarMenu = 'gpus' | 'range' | 'compare' | 'marks' | 'charts' | 'help';

/** A mark that the user is about to add. */
export interface MarkDraft {
  at_ms: number;
  text: string;
}

interface ToolbarProps {
  state: DashboardState;
  change: ChangeState;
  gpus: readonly GpuState[];
  /** The displayed charts in order. */
  charts: readonly string[];
  now_ms: number;
  /** The first recorded time; `null` if it is unknown. */
  oldest_ms: number | null;
  /** The open menu. The content of other menus is not rendered. */
  opened: ToolbarMenu | null;
  onOpen: (menu: ToolbarMenu, open: boolean) => void;
  /** Closes the menu and focuses the charts. */
  onDone: () => void;
  draft: MarkDraft | null;
  onDraft: (draft: MarkDraft) => void;
  /**
   * Sends HTTP requests. If it is missing, no marks can be set and no earlier span can be shown.
   */
  request?: Request | undefined;
  readOnly?: boolean | undefined;
}

const HOUR_MS = 3_600_000;
/**
 * The suggested distances between the displayed span and the earlier span that is compared with it.
 */
const COMPARE_DISTANCES_MS = [HOUR_MS, 24 * HOUR_MS, 7 * 24 * HOUR_MS];
/** The maximum length of a mark's text. The server rejects longer texts. */
const MAX_TEXT_LENGTH = 100;
/** SVG paths in a square of 16 units. */
const ICONS = {
  pause: 'M5 3v10M11 3v10',
  resume: 'M5 3l8 5-8 5z',
  fit: 'M2 2h12M2 14h12M8 4.5v7M5.5 7L8 4.5 10.5 7M5.5 9L8 11.5 10.5 9',
  compare: 'M2 9l4-5 4 3 4-5M2 14l4-3 4 2 4-4',
  marks: 'M4 14.5V2l9 3-9 3.5',
  charts: 'M3 14V8M8 14V2M13 14V6',
  help: 'M1.5 4h13v8.5h-13zM4 7h.01M8 7h.01M12 7h.01M5 10h6',
};

/** The controls of a dashboard: GPUs, charts, their layout, and the time range. */
export function Toolbar(props: ToolbarProps) {
  const { state, change, gpus, now_ms, oldest_ms, opened, onOpen, onDone, request } = props;
  const set = (changes: Partial<DashboardState>): void =>
    change((before) => ({ ...before, ...changes }));
  /** Changes the state from a menu, and closes the menu. */
  const choose = (changes: Partial<DashboardState>): void => {
    set(changes);
    onDone();
  };
  const paused = isPaused(state);
  const [from_ms, to_ms] = displayedRange(state, now_ms);
  const all = gpus.map(({ index }) => index);
  const count = state.gpus?.length ?? all.length;
  const menu = (
    id: ToolbarMenu,
    name: string,
    label: ComponentChild,
    content: () => ComponentChildren,
  ) => (
    <Menu
      class={typeof label === 'string' ? 'gpumon-text-menu' : ''}
      label={label}
      name={typeof label === 'string' ? `${name}: ${label}` : name}
      isOpen={opened === id}
      onOpen={(open) => onOpen(id, open)}
    >
      {opened === id && <div>{content()}</div>}
    </Menu>
  );
  /** Returns why there is nothing to compare at this distance, or `undefined` if data may exist. */
  const emptyReason = (compared_ms: number): string | undefined =>
    oldest_ms !== null && to_ms - compared_ms <= oldest_ms
      ? trans.__('The history starts at %1.', formatTimeWithDateUnlessToday(oldest_ms, now_ms))
      : undefined;
  const compared = state.compared_ms && trans.__('%1 earlier', formatDuration(state.compared_ms));
  return (
    <div class="gpumon-controls">
      {all.length > 1 &&
        menu(
          'gpus',
          trans.__('GPUs'),
          count < all.length
            ? trans.__('%1 of %2 GPUs', count, all.length)
            : trans._n('%1 GPU', '%1 GPUs', all.length),
          () =>
            renderChips(trans.__('GPUs'), [
              renderChip(trans.__('All'), () => set({ gpus: null }), state.gpus === null),
              ...gpus.map(({ index, fullName }) =>
                renderChip(
                  index,
                  () => set({ gpus: toggleGpuSelection(state.gpus, index, all) }),
                  state.gpus?.includes(index) ?? true,
                  plainText(fullName),
                ),
              ),
            ]),
        )}
      {all.length > 1 &&
        renderChips(trans.__('Layout'), [
          renderChip(
            trans.__('Overlaid'),
            () => set({ layout: 'together' }),
            !hasSeparateGpuCharts(state, count),
          ),
          renderChip(
            trans.__('By GPU'),
            () => set({ layout: 'apart' }),
            hasSeparateGpuCharts(state, count),
          ),
        ])}
      {menu(
        'range',
        trans.__('Time range'),
        state.range === null
          ? formatDuration(state.span_ms)
          : trans.__('Custom: %1', formatDuration(to_ms - from_ms)),
        () => (
          <>
            {renderChips(
              trans.__('Time range'),
              SPANS_MIN.map((minutes) => {
                const span_ms = minutes * 60_000;
                return renderChip(
                  formatDuration(span_ms),
                  () => choose({ ...resume(state), span_ms }),
                  !paused && state.span_ms === span_ms,
                );
              }),
            )}
            <TimeForm
              title={trans.__('Custom')}
              fields={[
                [trans.__('From'), from_ms],
                [trans.__('To'), to_ms],
              ]}
              action={trans.__('Apply')}
              onTimes={([from = NaN, to = NaN]) => {
                if (to - from < 1000) {
                  return trans.__('Choose an end that is after the start.');
                }
                choose(zoomTo(state, from, to));
                return '';
              }}
            />
          </>
        ),
      )}
      <span class="gpumon-icons">
        {renderChip(
          <Icon of={paused ? 'resume' : 'pause'} />,
          () => change(togglePaused),
          paused,
          paused
            ? trans.__('Resume live updates')
            : trans.__('Pause the charts. Samples are still recorded.'),
          trans.__('Pause'),
        )}
        {renderChip(
          <Icon of="fit" />,
          () => set({ fitted: !state.fitted }),
          state.fitted,
          trans.__('Fit value axes to the data'),
          trans.__('Fit axes'),
        )}
        {request !== undefined &&
          menu(
            'compare',
            compared === null ? trans.__('Compare') : trans.__('Compared: %1', compared),
            <>
              <Icon of="compare" />
              {compared}
            </>,
            () => (
              <>
                {renderChips(trans.__('Compare'), [
                  ...COMPARE_DISTANCES_MS.map((compared_ms) =>
                    renderChip(
                      trans.__('%1 earlier', formatDuration(compared_ms)),
                      () => choose({ compared_ms }),
                      state.compared_ms === compared_ms,
                      emptyReason(compared_ms),
                      undefined,
                      emptyReason(compared_ms) !== undefined,
                    ),
                  ),
                  compared !== null &&
                    renderChip(trans.__('Stop comparing'), () => choose({ compared_ms: null })),
                ])}
                <TimeForm
                  title={trans.__('Another time')}
                  fields={[[trans.__('From'), from_ms - (state.compared_ms ?? HOUR_MS)]]}
                  action={trans.__('Compare')}
                  onTimes={([start = NaN]) => {
                    if (!(start < from_ms)) {
                      return trans.__('Choose a time before the current time range.');
                    }
                    const reason = emptyReason(from_ms - start);
                    if (reason === undefined) {
                      choose({ compared_ms: from_ms - start });
                    }
                    return reason ?? '';
                  }}
                />
              </>
            ),
          )}
        {request !== undefined &&
          props.readOnly !== true &&
          menu('marks', trans.__('Add mark'), <Icon of="marks" />, () => (
            <MarkForm {...props} request={request} />
          ))}
        {menu('charts', trans.__('Charts'), <Icon of="charts" />, () => (
          <ChartList {...props} />
        ))}
        {menu('help', trans.__('Shortcuts'), <Icon of="help" />, () => (
          <Shortcuts />
        ))}
      </span>
    </div>
  );
}

function Icon({ of }: { of: keyof typeof ICONS }) {
  return (
    <svg class="gpumon-icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={ICONS[of]} />
    </svg>
  );
}

function renderChips(label: string, children: ComponentChildren) {
  return (
    <div class="gpumon-group-of-chips" role="group" aria-label={label}>
      {children}
    </div>
  );
}

/** Returns a button. If `content` is an icon, `name` is the button's accessible name. */
function renderChip(
  content: ComponentChild,
  onClick: () => void,
  pressed?: boolean,
  title?: string,
  name?: string,
  disabled = false,
): ComponentChild {
  return (
    <button
      type="button"
      class="gpumon-chip"
      aria-pressed={pressed}
      title={title}
      aria-label={name}
      disabled={disabled}
      onClick={onClick}
    >
      {content}
    </button>
  );
}

function TimeForm({
  title,
  fields,
  action,
  onTimes,
}: {
  title: string;
  /** The label and the initial time of each field. */
  fields: readonly (readonly [label: string, at_ms: number])[];
  action: string;
  /** Applies the times. Returns an error message if they are invalid. */
  onTimes: (times_ms: readonly number[]) => string;
}) {
  const [initial] = useState(() => fields.map(([, at_ms]) => formatDateTimeInput(at_ms)));
  const last = useRef<HTMLInputElement>(null);
  return (
    <form
      class="gpumon-time-form"
      aria-label={title}
      onInput={() => last.current?.setCustomValidity('')}
      onSubmit={(event) => {
        event.preventDefault();
        const inputs = [...event.currentTarget.querySelectorAll('input')];
        const problem = onTimes(inputs.map(({ value }) => new Date(value).getTime()));
        last.current?.setCustomValidity(problem);
        last.current?.reportValidity();
      }}
    >
      <strong>{title}</strong>
      {fields.map(([label], place) => (
        <label key={label}>
          {label}
          <input type="datetime-local" step="1" required defaultValue={initial[place]} ref={last} />
        </label>
      ))}
      <button class="gpumon-chip">{action}</button>
    </form>
  );
}

/** Returns a time in the format of `datetime-local` inputs: local time with seconds. */
function formatDateTimeInput(at_ms: number): string {
  const zone_ms = new Date(at_ms).getTimezoneOffset() * 60_000;
  return new Date(at_ms - zone_ms).toISOString().slice(0, 19);
}

/** A form that adds a mark at the selected time. All users of the server see the mark. */
function MarkForm({ draft, onDraft, onDone, request }: ToolbarProps & { request: Request }) {
  const input = useRef<HTMLInputElement>(null);
  const [error, setError] = useState('');
  const [isSending, setSending] = useState(false);
  const at_ms = draft?.at_ms ?? 0;
  // The text field gets the focus, because the next key presses are the text of the mark.
  useLayoutEffect(() => input.current?.focus(), []);
  const send = async (): Promise<void> => {
    setSending(true);
    const mark = { text: input.current?.value, at_ms: Math.round(at_ms) };
    const { why } = await readJsonResponse(request('api/v1/marks', makeRequestInit('POST', mark)));
    setSending(false);
    setError(why ?? '');
    if (why === null) {
      onDone();
    }
  };
  return (
    <form
      class="gpumon-mark-form"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <p class="gpumon-missing">
        {trans.__('At %1, visible to everyone who uses this server', formatTimeOfDay(at_ms))}
      </p>
      <input
        type="text"
        required
        maxLength={MAX_TEXT_LENGTH}
        aria-label={trans.__('Text of the mark')}
        placeholder={trans.__('Text, such as: epoch 3')}
        ref={input}
        onInput={({ currentTarget }) => onDraft({ at_ms, text: currentTarget.value })}
      />
      <button class="gpumon-chip" disabled={isSending}>
        {trans.__('Add')}
      </button>
      <p class="gpumon-error" role="alert">
        {error}
      </p>
    </form>
  );
}

/**
 * The displayed charts with buttons to remove them, and the other charts with buttons to add them.
 */
function ChartList({ charts, gpus, state, change }: ToolbarProps) {
  const groups = chartGroups();
  const titles = new Map(
    groups.flatMap((group) => group.charts.map(({ id, title }) => [id, title()])),
  );
  const titleOf = (id: string): string => vendorSpecificTitle(id, titles.get(id) ?? id, gpus);
  const set = (all: readonly string[]): void =>
    change((before) => ({ ...before, charts: keepValidCharts(all) }));
  return (
    <>
      <ul class="gpumon-chart-list">
        {charts.map((id) => (
          <li key={id}>
            <span>{titleOf(id)}</span>
            <button
              type="button"
              title={trans.__('Remove %1', titleOf(id))}
              aria-label={trans.__('Remove %1', titleOf(id))}
              onClick={() => set(charts.filter((other) => other !== id))}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      <select
        aria-label={trans.__('Add a chart')}
        value=""
        onChange={({ currentTarget }) => {
          set([...charts, currentTarget.value]);
          currentTarget.value = '';
        }}
      >
        <option value="">{trans.__('Add a chart')}</option>
        {groups.map((group) => (
          <optgroup key={group.title} label={group.title}>
            {group.charts.map(({ id }) => (
              <option key={id} value={id} disabled={charts.includes(id)}>
                {titleOf(id)}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
      {state.charts !== null && renderChip(trans.__('Default charts'), () => set([]))}
    </>
  );
}

/** The list of keyboard and pointer actions on charts. */
function Shortcuts() {
  const rows = [
    [trans.__('Drag over a chart'), trans.__('Zoom to a time range and pause the charts')],
    [
      trans.__('Ctrl+wheel, pinch'),
      trans.__(
        'Zoom in or out. Zoom out fully for live charts, and further for a longer time range.',
      ),
    ],
    [trans.__('Drag over a value axis'), trans.__('Zoom to a range of values')],
    [trans.__('Double-click'), trans.__('Reset the zoom')],
    [trans.__('Click in a legend'), trans.__('Show only this line; click again to show all')],
    [trans.__('Ctrl+click or Shift+click in a legend'), trans.__('Hide or show this line')],
    [
      trans.__('Drag the title of a chart'),
      trans.__('Arrange charts; with the keyboard, use the menu of a chart'),
    ],
    [
      trans.__('Drag the lower edge of a chart'),
      trans.__('Resize all charts; with the keyboard, use ↑ and ↓'),
    ],
    ['+ −', trans.__('Zoom in or out; with live charts, shorten or lengthen the time range')],
    [trans.__('← →, Shift+drag'), trans.__('Move in time')],
    [trans.__('Space'), trans.__('Pause or resume')],
    [trans.__('y'), trans.__('Fit value axes to the data, or show their full range')],
    [
      trans.__('m'),
      trans.__('Add a mark at the pointer, or at the current time; everyone sees it'),
    ],
    [trans.__('0, Esc'), trans.__('Reset the zoom')],
    ['?', trans.__('Show this list')],
  ] as const;
  return (
    <dl class="gpumon-shortcuts" tabIndex={0}>
      {rows.map(([key, text]) => (
        <Fragment key={key}>
          <dt>{key}</dt>
          <dd>{text}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
