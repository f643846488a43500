/** The head of a fleet: where it is read, and whether it is what there is now. */

import { button, h, KeyedRows, setAttribute, setShown, setText } from '../../lib/dom';
import { count, duration, since } from '../../lib/format';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { FleetAnswers } from '../../model/fleet/reader';
import { isUpdating, problemsOf } from '../../model/fleet/reader';
import type { Fleet, FleetState } from '../../wire';

export interface HeadOptions {
  title: string;
  actions: readonly HTMLElement[];
  onRetry: () => void;
}

/** What the page has of its fleet. */
export type HeadState = 'loading' | 'live' | 'partial' | 'updating' | 'outdated' | 'error';

const PROBLEM_LENGTH = 600;

export class FleetHead {
  readonly element: HTMLElement;
  readonly notice: HTMLElement;
  private readonly source = h('span', { class: 'gpumon-platform gpumon-wide' });
  private readonly text = h('span', { class: 'gpumon-status-text' });
  private readonly line = h(
    'span',
    { class: 'gpumon-status', 'data-testid': 'gpumon-fleet-status' },
    h('span', { class: 'gpumon-dot', 'aria-hidden': 'true' }),
    this.text,
  );
  private readonly noticeTitle = h('h2', {});
  private readonly problems = h('ul', {});
  private readonly problemRows = new KeyedRows(
    this.problems,
    ([place]: [number, string]) => String(place),
    () => ({ element: h('li', {}) }),
  );

  constructor({ title, actions, onRetry }: HeadOptions) {
    this.element = h(
      'div',
      { class: 'gpumon-head gpumon-fleet-head' },
      h(
        'div',
        { class: 'gpumon-head-row' },
        h('h1', { class: 'gpumon-title' }, title),
        this.source,
        this.line,
        ...actions,
      ),
    );
    this.notice = h(
      'section',
      { class: 'gpumon-notice gpumon-fleet-notice', 'data-testid': 'gpumon-fleet-notice' },
      this.noticeTitle,
      this.problems,
      button({ class: 'gpumon-retry' }, onRetry, trans.__('Retry now')),
    );
  }

  /** Writes what is known; returns what that is. */
  update(answers: FleetAnswers, now_ms: number): HeadState {
    const fleet = answers.fleet.value;
    const state = stateOf(answers);
    setText(this.source, fleet === null ? '' : sourceText(fleet));
    setAttribute(
      this.line,
      'data-level',
      {
        loading: 'pending',
        live: 'ok',
        partial: 'pending',
        updating: 'pending',
        outdated: 'error',
        error: 'error',
      }[state],
    );
    setText(this.text, statusText(state, fleet, now_ms));
    setShown(this.notice, state === 'partial' || state === 'outdated' || state === 'error');
    setAttribute(this.notice, 'data-level', state === 'partial' ? 'warning' : 'critical');
    setText(this.noticeTitle, noticeTitle(state, fleet, now_ms));
    const problems = fleet === null ? [answers.fleet.why ?? ''] : problemsOf(answers);
    this.problemRows.update([...problems.entries()], ({ element }, [, problem]) =>
      setText(element, plainText(problem, PROBLEM_LENGTH)),
    );
    return state;
  }
}

function stateOf({ fleet: { value, why } }: FleetAnswers): HeadState {
  if (value === null) {
    return why === null ? 'loading' : 'error';
  }
  const states: Record<FleetState, HeadState> = {
    loading: value.problems.length === 0 ? 'loading' : 'error',
    current: 'live',
    partial: 'partial',
    outdated: isUpdating(value) ? 'updating' : 'outdated',
  };
  return why === null
    ? ((states as Partial<Record<string, HeadState>>)[value.state] ?? 'partial')
    : 'outdated';
}

function sourceText({ source }: Fleet): string {
  return source.kind === 'hosts'
    ? trans.__('%1, over ssh', plainText(source.name, 120))
    : trans.__('from %1', plainText(source.name, 120));
}

function statusText(state: HeadState, fleet: Fleet | null, now_ms: number): string {
  switch (state) {
    case 'loading':
      return trans.__('Loading');
    case 'error':
      return trans.__('No answer');
    case 'updating':
      return trans.__('read at %1, updating', since(fleet?.at_ms ?? now_ms, now_ms));
    case 'outdated':
      return trans.__('outdated for %1', duration(now_ms - (fleet?.at_ms ?? now_ms)));
    case 'partial':
      return trans.__('incomplete, read at %1', since(fleet?.at_ms ?? now_ms, now_ms));
    case 'live':
      return trans.__(
        'read at %1, every %2 s',
        since(fleet?.at_ms ?? now_ms, now_ms),
        count(fleet?.refresh_s ?? 0),
      );
  }
}

function noticeTitle(state: HeadState, fleet: Fleet | null, now_ms: number): string {
  const at_ms = fleet?.at_ms ?? now_ms;
  switch (state) {
    case 'partial':
      return trans.__('Some of it could not be read');
    case 'outdated':
      return trans.__(
        'Last known values, from %1 (%2 ago)',
        since(at_ms, now_ms),
        duration(now_ms - at_ms),
      );
    default:
      return trans.__('The fleet cannot be shown');
  }
}
