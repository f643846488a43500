/** States of a fleet as text. */

import { duration } from '../../lib/format';
import { own } from '../../lib/own';
import { joined, plainText } from '../../lib/text';
import { table, trans } from '../../lib/translation';
import type { FleetOwner, GpuState, OwnerKind } from '../../wire';
import { LABELS } from '../../wire/condition-labels';
import type { Level } from '../describe';
import { describeXid, errorTitle } from '../describe-condition';
import { xidOf } from '../xid';
import { rowName, type Columns } from './columns';

/** Owners are called as they are where they run. */
const NAME_LENGTH = 80;

const LEVELS: readonly Level[] = ['none', 'notice', 'warning', 'critical'];

/** What a place of a severity is called in the style sheet. */
export function levelOf(severity: number): Level {
  return LEVELS[Math.min(severity, 3)] ?? 'none';
}

/** What a condition is called; one that only a newer server knows, by its name. */
export function conditionText(kind: string): string {
  const code = xidCode(kind);
  if (code !== null) {
    return errorTitle(code);
  }
  const label = kind === 'power_capped' ? trans.__('Power-capped') : own(LABELS, kind)?.();
  return label ?? plainText(kind.replaceAll('_', ' '), NAME_LENGTH);
}

/** Returns the meaning of an Xid and its fix for a hover text; empty for other conditions. */
export function conditionTitle(kind: string): string {
  const xid = xidOf(xidCode(kind) ?? -1);
  // Hover texts have no fonts for commands.
  return joined([xid?.meaning(), xid?.advice()], ' ').replaceAll('`', '');
}

/** Returns the meaning of an Xid without its full stop; empty for other conditions. */
export function conditionMeaning(kind: string): string {
  return (
    xidOf(xidCode(kind) ?? -1)
      ?.meaning()
      .replace(/\.$/, '') ?? ''
  );
}

/** `null` where a condition is no Xid that has a number. */
function xidCode(kind: string): number | null {
  const [, code] = /^xid_(\d{1,6})$/.exec(kind) ?? [];
  return code === undefined ? null : Number(code);
}

/** `Xid 79: The GPU has fallen off the bus.`, and what to do. */
export function xidTexts(code: number): { text: string; advice: string } {
  const xid = xidOf(code);
  return xid === null
    ? { text: errorTitle(code), advice: '' }
    : { text: describeXid(code, undefined, xid.meaning()), advice: xid.advice() };
}

const STATES = table((): Record<GpuState, string> => ({
  busy: trans.__('In use'),
  idle: trans.__('Idle, held'),
  free: trans.__('Free'),
  lost: trans.__('Not responding'),
  unknown: trans.__('Unknown'),
}));

/** What a row is at, with for how long it is idle, or why nothing is known of it. */
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
      const idle = duration((columns.idle_s[row] ?? 0) * 1000);
      return { text: trans.__('Idle, held for %1', idle), reason: '', level: 'notice' };
    }
    case 'lost':
      return { text, reason, level: 'critical' };
    default:
      return { text, reason: '', level: 'none' };
  }
}

/** A row in one sentence, for whoever hears it: `node-0412 / 3: In use, 96 %`. */
export function spokenRow(columns: Columns, row: number, readings: readonly string[]): string {
  const conditions = columns.conditionsOf(row).map(({ kind }) => conditionText(kind));
  const parts = [stateText(columns, row).text, ...readings, ...conditions];
  return trans.__('%1: %2', rowName(columns, row), joined(parts, ', '));
}

const KINDS = table((): Record<OwnerKind, string> => ({
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
  return own<string>(KINDS(), kind) ?? plainText(kind, NAME_LENGTH);
}

/** What of a user's it is, without the user: `Slurm job 88123`; empty for other processes. */
export function jobText({ kind, id }: FleetOwner): string {
  return kind === 'user' ? '' : joined([kindText(kind), plainText(id, NAME_LENGTH)], ' ');
}

export function userText({ user }: FleetOwner): string | null {
  return user === null ? null : plainText(user, NAME_LENGTH);
}

/** `ana · Slurm job 88123`. */
export function ownerText(owner: FleetOwner): string {
  return joined([userText(owner), jobText(owner)]) || kindText(owner.kind);
}
