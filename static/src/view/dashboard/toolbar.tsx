import { Fragment, type ComponentChild, type ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { duration, timeOfDay } from '../../lib/format';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import { isApart } from '../../model/dashboard/arrange';
import { chartGroups } from '../../model/dashboard/kinds';
import {
  asChosen,
  chosenWith,
  isPaused,
  rangeOf,
  resumed,
  SPANS_MIN,
  togglePaused,
  zoomed,
  type DashboardState,
} from '../../model/dashboard/state';
import type { GpuState } from '../../model/gpu';
import { gpuTitle } from '../../model/gpu-title';
import { answerOf, OWN_HEADERS, type Request } from '../../model/request';
import { Menu } from '../menu';
import type { Change } from './plot-content';

export type ToolbarMenu = 'gpus' | 'range' | 'compare' | 'marks' | 'charts' | 'help';

/** A mark that somebody is about to add. */
export interface Draft {
  at_ms: number;
  text: string;
}

export interface ToolbarProps {
  state: DashboardState;
  change: Change;
  gpus: readonly GpuState[];
  /** The charts that are shown, in their order. */
  charts: readonly string[];
  now_ms: number;
  /** The menu that is open; its content is rendered only then. */
  opened: ToolbarMenu | null;
  onOpen: (menu: ToolbarMenu, open: boolean) => void;
  /** Closes the menu and gives the focus to the charts. */
  onDone: () => void;
  draft: Draft | null;
  onDraft: (draft: Draft) => void;
  /** Asks the server; without it, nothing can be marked and no earlier time shown. */
  request?: Request | undefined;
  readOnly?: boolean | undefined;
}

const HOUR_MS = 3_600_000;
/** What people compare with. */
const EARLIER_MS = [HOUR_MS, 24 * HOUR_MS, 7 * 24 * HOUR_MS];
/** The longest text of a mark that the server accepts. */
const LONGEST_TEXT = 100;
/** Lines in a square of 16. */
const ICONS = {
  pause: 'M5 3v10M11 3v10',
  resume: 'M5 3l8 5-8 5z',
  fit: 'M2 2h12M2 14h12M8 4.5v7M5.5 7L8 4.5 10.5 7M5.5 9L8 11.5 10.5 9',
  compare: 'M2 9l4-5 4 3 4-5M2 14l4-3 4 2 4-4',
  marks: 'M4 14.5V2l9 3-9 3.5',
  charts: 'M3 14V8M8 14V2M13 14V6',
  help: 'M1.5 4h13v8.5h-13zM4 7h.01M8 7h.01M12 7h.01M5 10h6',
};

/** The controls of a dashboard: which GPUs and charts, in which arrangement, and which part of the past. */
export function Toolbar(props: ToolbarProps): ComponentChild {
  const { state, change, gpus, now_ms, opened, onOpen, onDone, request } = props;
  const set = (changes: Partial<DashboardState>): void =>
    change((before) => ({ ...before, ...changes }));
  const paused = isPaused(state);
  const [from_ms, to_ms] = rangeOf(state, now_ms);
  const chosen = state.gpus?.length ?? gpus.length;
  const menu = (
    id: ToolbarMenu,
    label: ComponentChild,
    name: string,
    content: () => ComponentChildren,
  ): ComponentChild => (
    <Menu
      class={`gpumon-${typeof label === 'string' ? 'text' : 'icon'}-menu`}
      label={label}
      name={name}
      open={opened === id}
      onOpen={(open) => onOpen(id, open)}
    >
      {opened === id && <div>{content()}</div>}
    </Menu>
  );
  const compared =
    state.compared_ms !== null && trans.__('%1 earlier', duration(state.compared_ms));
  return (
    <div class="gpumon-controls">
      {gpus.length > 1 &&
        menu(
          'gpus',
          chosen < gpus.length
            ? trans.__('%1 of %2 GPUs', chosen, gpus.length)
            : trans._n('%1 GPU', '%1 GPUs', gpus.length),
          trans.__('GPUs'),
          () => (
            <Chips label={trans.__('GPUs')}>
              <Chip pressed={state.gpus === null} onClick={() => set({ gpus: null })}>
                {trans.__('All')}
              </Chip>
              {gpus.map(({ index, fullName }) => (
                <Chip
                  key={index}
                  pressed={state.gpus?.includes(index) ?? true}
                  title={plainText(fullName)}
                  onClick={() => {
                    const all = gpus.map((gpu) => gpu.index);
                    change((before) => ({ ...before, gpus: chosenWith(before.gpus, index, all) }));
                  }}
                >
                  {index}
                </Chip>
              ))}
            </Chips>
          ),
        )}
      {gpus.length > 1 && (
        <Chips label={trans.__('Layout')}>
          {(['together', 'apart'] as const).map((layout) => (
            <Chip
              key={layout}
              pressed={isApart(state, chosen) === (layout === 'apart')}
              onClick={() => set({ layout })}
            >
              {layout === 'apart' ? trans.__('By GPU') : trans.__('Overlaid')}
            </Chip>
          ))}
        </Chips>
      )}
      {menu(
        'range',
        state.range === null
          ? duration(state.span_ms)
          : trans.__('Custom: %1', duration(to_ms - from_ms)),
        trans.__('Time range'),
        () => (
          <>
            <Chips label={trans.__('Time range')}>
              {SPANS_MIN.map((minutes) => (
                <Chip
                  key={minutes}
                  pressed={!paused && state.span_ms === minutes * 60_000}
                  onClick={() => {
                    change((before) => ({ ...resumed(before), span_ms: minutes * 60_000 }));
                    onDone();
                  }}
                >
                  {duration(minutes * 60_000)}
                </Chip>
              ))}
            </Chips>
            <TimeForm
              title={trans.__('Custom')}
              fields={[
                [trans.__('From'), from_ms],
                [trans.__('To'), to_ms],
              ]}
              action={trans.__('Apply')}
              problemOf={([from = NaN, to = NaN]) =>
                to - from >= 1000 ? null : trans.__('Choose an end that is after the start.')
              }
              onTimes={([from = 0, to = 0]) => {
                change((before) => zoomed(before, from, to));
                onDone();
              }}
            />
          </>
        ),
      )}
      <span class="gpumon-icons">
        <IconButton
          icon={paused ? 'resume' : 'pause'}
          name={trans.__('Pause')}
          title={
            paused
              ? trans.__('Resume live updates')
              : trans.__('Pause the charts. Samples are still recorded.')
          }
          pressed={paused}
          onClick={() => change(togglePaused)}
        />
        <IconButton
          icon="fit"
          name={trans.__('Fit axes')}
          title={trans.__('Fit value axes to the data')}
          pressed={state.fitted}
          onClick={() => set({ fitted: !state.fitted })}
        />
        {request !== undefined &&
          menu(
            'compare',
            <>
              <Icon of="compare" />
              {compared}
            </>,
            compared === false ? trans.__('Compare') : trans.__('Compared: %1', compared),
            () => (
              <>
                <Chips label={trans.__('Compare')}>
                  {EARLIER_MS.map((by_ms) => (
                    <Chip
                      key={by_ms}
                      pressed={state.compared_ms === by_ms}
                      onClick={() => {
                        set({ compared_ms: by_ms });
                        onDone();
                      }}
                    >
                      {trans.__('%1 earlier', duration(by_ms))}
                    </Chip>
                  ))}
                  {compared !== false && (
                    <Chip
                      onClick={() => {
                        set({ compared_ms: null });
                        onDone();
                      }}
                    >
                      {trans.__('Stop comparing')}
                    </Chip>
                  )}
                </Chips>
                <TimeForm
                  title={trans.__('Another time')}
                  fields={[[trans.__('From'), from_ms - (state.compared_ms ?? HOUR_MS)]]}
                  action={trans.__('Compare')}
                  problemOf={([start = NaN]) =>
                    start < from_ms
                      ? null
                      : trans.__('Choose a time before the span that is shown.')
                  }
                  onTimes={([start = 0]) => {
                    set({ compared_ms: from_ms - start });
                    onDone();
                  }}
                />
              </>
            ),
          )}
        {request !== undefined &&
          props.readOnly !== true &&
          menu('marks', <Icon of="marks" />, trans.__('Add mark'), () => (
            <MarkForm {...props} request={request} />
          ))}
        {menu('charts', <Icon of="charts" />, trans.__('Charts'), () => (
          <ChartList {...props} />
        ))}
        {menu('help', <Icon of="help" />, trans.__('Shortcuts'), () => (
          <Shortcuts />
        ))}
      </span>
    </div>
  );
}

function Icon({ of }: { of: keyof typeof ICONS }): ComponentChild {
  return (
    <svg class="gpumon-icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={ICONS[of]} />
    </svg>
  );
}

interface IconButtonProps {
  icon: keyof typeof ICONS;
  name: string;
  title: string;
  pressed: boolean;
  onClick: () => void;
}

function IconButton({ icon, name, title, pressed, onClick }: IconButtonProps): ComponentChild {
  return (
    <button
      type="button"
      class="gpumon-chip"
      aria-label={name}
      title={title}
      aria-pressed={pressed}
      onClick={onClick}
    >
      <Icon of={icon} />
    </button>
  );
}

function Chips({
  label,
  children,
}: {
  label: string;
  children: ComponentChildren;
}): ComponentChild {
  return (
    <div class="gpumon-group-of-chips" role="group" aria-label={label}>
      {children}
    </div>
  );
}

interface ChipProps {
  pressed?: boolean;
  title?: string;
  onClick: () => void;
  children: ComponentChildren;
}

function Chip({ pressed, title, onClick, children }: ChipProps): ComponentChild {
  return (
    <button
      type="button"
      class="gpumon-chip"
      aria-pressed={pressed}
      title={title}
      onClick={onClick}
    >
      {children}
    </button>
  );
}

interface TimeFormProps {
  title: string;
  /** The label of each field, and the time that it has at first. */
  fields: readonly (readonly [label: string, at_ms: number])[];
  action: string;
  /** Returns what is wrong with the times; `null` if nothing is. */
  problemOf: (times_ms: readonly number[]) => string | null;
  onTimes: (times_ms: readonly number[]) => void;
}

function TimeForm({ title, fields, action, problemOf, onTimes }: TimeFormProps): ComponentChild {
  const [initial] = useState(() => fields.map(([, at_ms]) => localTime(at_ms)));
  const last = useRef<HTMLInputElement>(null);
  return (
    <form
      class="gpumon-time-form"
      aria-label={title}
      onInput={() => last.current?.setCustomValidity('')}
      onSubmit={(event) => {
        event.preventDefault();
        const inputs = [...event.currentTarget.querySelectorAll('input')];
        const times_ms = inputs.map(({ value }) => new Date(value).getTime());
        const problem = problemOf(times_ms);
        if (problem === null) {
          onTimes(times_ms);
        } else {
          last.current?.setCustomValidity(problem);
          last.current?.reportValidity();
        }
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

/** Returns a time as `datetime-local` has it: local, to the second. */
function localTime(at_ms: number): string {
  const zone_ms = new Date(at_ms).getTimezoneOffset() * 60_000;
  return new Date(at_ms - zone_ms).toISOString().slice(0, 19);
}

/** Marks a moment on the charts of everybody. */
function MarkForm({
  draft,
  onDraft,
  onDone,
  request,
}: ToolbarProps & { request: Request }): ComponentChild {
  const input = useRef<HTMLInputElement>(null);
  const [error, setError] = useState('');
  const [isSending, setSending] = useState(false);
  const { at_ms, text } = draft ?? { at_ms: 0, text: '' };
  // What is typed next is the text.
  useLayoutEffect(() => input.current?.focus(), []);
  const send = async (): Promise<void> => {
    setSending(true);
    const body = JSON.stringify({ text, at_ms: Math.round(at_ms) });
    const { why } = await answerOf(
      request('api/v1/marks', { method: 'POST', headers: OWN_HEADERS, body }),
    );
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
        {trans.__('At %1, on the charts of everybody', timeOfDay(at_ms))}
      </p>
      <input
        type="text"
        required
        maxLength={LONGEST_TEXT}
        aria-label={trans.__('Text of the mark')}
        placeholder={trans.__('Text, such as: epoch 3')}
        ref={input}
        value={text}
        onInput={({ currentTarget }) => onDraft({ at_ms, text: currentTarget.value })}
      />
      <button class="gpumon-chip" disabled={isSending}>
        {trans.__('Add')}
      </button>
      <p role="alert">{error}</p>
    </form>
  );
}

/** The charts that are shown, with buttons that remove them, and all others to add. */
function ChartList({ charts, gpus, state, change }: ToolbarProps): ComponentChild {
  const groups = chartGroups();
  const titles = new Map(
    groups.flatMap((group) => group.charts.map(({ id, title }) => [id, title()])),
  );
  const titleOf = (id: string): string => gpuTitle(id, titles.get(id) ?? id, gpus);
  const set = (all: readonly string[]): void =>
    change((before) => ({ ...before, charts: asChosen(all) }));
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
      {state.charts !== null && <Chip onClick={() => set([])}>{trans.__('Default charts')}</Chip>}
    </>
  );
}

/** What keys and pointer do on charts. */
function Shortcuts(): ComponentChild {
  const rows = [
    [trans.__('Drag over a chart'), trans.__('Zoom to a span of time; the charts are paused')],
    [
      trans.__('Ctrl+wheel, pinch'),
      trans.__('Zoom in or out; all the way out is live again, and goes back further'),
    ],
    [trans.__('Drag over a value axis'), trans.__('Zoom to a range of values')],
    [trans.__('Double-click'), trans.__('Reset the zoom')],
    [trans.__('Click in a legend'), trans.__('Only this line; again for all')],
    [trans.__('Ctrl+click or Shift+click in a legend'), trans.__('Hide or show this line')],
    [
      trans.__('Drag the title of a chart'),
      trans.__('Arrange charts; the menu of a chart does so by keys'),
    ],
    [
      trans.__('Drag the lower edge of a chart'),
      trans.__('Resize all charts; ↑ and ↓ do so by keys'),
    ],
    ['+ −', trans.__('Zoom in or out; while live, a shorter or longer time range')],
    [trans.__('← →, Shift+drag'), trans.__('Move in time')],
    [trans.__('Space'), trans.__('Pause or resume')],
    [trans.__('y'), trans.__('Fit value axes to the data, or show them whole')],
    [trans.__('m'), trans.__('Mark the moment pointed at, or now, on the charts of everybody')],
    [trans.__('0, Esc'), trans.__('Reset the zoom')],
    ['?', trans.__('This list')],
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
