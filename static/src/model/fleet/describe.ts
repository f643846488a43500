/** Texts about the states of a fleet. */

import { formatDuration } from '../../lib/format';
import { findOwnProperty } from '../../lib/collections';
import { joinParts, plainText } from '../../lib/text';
import { lazyTexts, trans } from '../../lib/translation';
import type { FleetOwner, GpuState, OwnerKind } from '../../wire';
import { LABELS } from '../../wire/condition-labels';
import type { Level } from '../describe';
import { describeXid, driverErrorTitle, xidOf } from '../alerts';
import { rowName, type Columns } from './columns';

/** The maximum length of displayed owner names. */
const NAME_LENGTH = 80;

const LEVELS: readonly Level[] = ['none', 'notice', 'warning', 'critical'];

/** Returns the level of a severity, which is also its name in the style sheet. */
export function levelOf(severity: number): Level {
  return LEVELS[Math.min(severity, 3)] ?? 'none';
}

/**
 * Returns the name of a condition. A condition that only a newer server knows is shown by its
 * identifier.
 */
export function conditionName(kind: string): string {
  const code = xidCode(kind);
  if (code !== null) {
    return driverErrorTitle(code);
  }
  const label =
    kind === 'power_capped' ? trans.__('Power-capped') : findOwnProperty(LABELS, kind)?.();
  return label ?? plainText(kind.replaceAll('_', ' '), NAME_LENGTH);
}

/**
 * Returns the meaning of an Xid and its fix for a hover text, or an empty text for other
 * conditions.
 */
export function conditionHoverText(kind: string): string {
  const xid = xidOf(xidCode(kind) ?? -1);
  // Hover texts cannot format commands, so the backticks around commands are removed.
  return joinParts([xid?.meaning(), xid?.advice()], ' ').replaceAll('`', '');
}

/** Returns the meaning of an Xid without a full stop, or an empty text for other conditions. */
export function conditionMeaning(kind: string): string {
  return (
    xidOf(xidCode(kind) ?? -1)
      ?.meaning()
      .replace(/\.$/, '') ?? ''
  );
}

/** Returns the code of an Xid condition, or `null` for other conditions. */
function xidCode(kind: string): number | null {
  const [, code] = /^xid_(\d{1,6})$/.exec(kind) ?? [];
  return code === undefined ? null : Number(code);
}

/** Returns a text such as `Xid 79: The GPU has fallen off the bus.`, and the advice. */
export function xidTexts(code: number): { text: string; advice: string } {
  const xid = xidOf(code);
  return xid === null
    ? { text: driverErrorTitle(code), advice: '' }
    : { text: describeXid(code, undefined, xid.meaning()), advice: xid.advice() };
}

const STATES = lazyTexts((): Record<GpuState, string> => ({
  busy: trans.__('In use'),
  idle: trans.__('Idle, held'),
  free: trans.__('Free'),
  lost: trans.__('Not responding'),
  unknown: trans.__('Unknown'),
}));

/** Returns the state of a row, with the idle time or the reason why the state is unknown. */
export function stateText(
  columns: Columns,
  row: number,
): { text: string; reason: string; level: Level } {
  const state = columns.state[row] ?? 'unknown';
  const node = columns.node[row] ?? 0;
  const reason = plainText(columns.fleet.nodes.reasons[node] ?? '');
  const text = STATES()[state];
  switch (state) {
    case 'unknown': {
      const health = columns.fleet.nodes.health[node];
      const ofNode =
        health === 'unreachable'
          ? trans.__('Node unreachable')
          : health === 'no_readings'
            ? trans.__('Node without readings')
            : text;
      return { text: ofNode, reason, level: health === 'up' ? 'none' : 'critical' };
    }
    case 'idle': {
      const idle = formatDuration((columns.idle_s[row] ?? 0) * 1000);
      return { text: trans.__('Idle, held for %1', idle), reason: '', level: 'notice' };
    }
    case 'lost':
      return { text, reason, level: 'critical' };
    default:
      return { text, reason: '', level: 'none' };
  }
}

/** Describes a row in one line for screen readers, such as `node-0412 / 3: In use, 96 %`. */
export function describeRow(columns: Columns, row: number, readings: readonly string[]): string {
  const conditions = columns.conditionsOf(row).map(({ kind }) => conditionName(kind));
  const parts = [stateText(columns, row).text, ...readings, ...conditions];
  return trans.__('%1: %2', rowName(columns, row), joinParts(parts, ', '));
}

const KINDS = lazyTexts((): Record<OwnerKind, string> => ({
  notebook: trans.__('notebook'),
  slurm_job: trans.__('Slurm job'),
  pbs_job: trans.__('PBS job'),
  lsf_job: trans.__('LSF job'),
  pod: trans.__('pod'),
  container: trans.__('container'),
  unit: trans.__('service'),
  user: trans.__('other processes'),
}));

export function kindText(kind: OwnerKind): string {
  return findOwnProperty<string>(KINDS(), kind) ?? plainText(kind, NAME_LENGTH);
}

/**
 * Returns the job of an owner without its user: `Slurm job 88123`. It is empty for other processes.
 */
export function jobText({ kind, id }: FleetOwner): string {
  return kind === 'user' ? '' : joinParts([kindText(kind), plainText(id, NAME_LENGTH)], ' ');
}

export function userText({ user }: FleetOwner): string | null {
  return user === null ? null : plainText(user, NAME_LENGTH);
}

/** Returns text such as `ana · Slurm job 88123`. */
export function ownerText(owner: FleetOwner): string {
  return joinParts([userText(owner), jobText(owner)]) || kindText(owner.kind);
}
