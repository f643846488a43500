/** The causes that limit the work of a GPU: their shares, the evidence, and advice. */

import { findOwnProperty } from '../lib/collections';
import { formatPercent } from '../lib/format';
import { joinParts } from '../lib/text';
import type {
  GpuSample,
  LimitClass,
  LimitEvidence,
  Limits,
  LimitShare,
  LimitSummary,
} from '../wire';
import { LIMIT_TEXTS } from '../wire/limit-texts';
import { valueOf } from './reading';

/** A cause that limits a GPU, with its share and its evidence. */
export interface LimitDescription {
  /** The cause with its share, such as `Host-bound 62 %`. */
  text: string;
  /** The evidence, as sentences. */
  evidence: string;
  /** The advice, as sentences; empty if there is nothing to improve. */
  advice: string;
}

/** The part of a summary that the page shows. Earlier versions stored fewer of the other parts. */
export type MeasuredLimits = Pick<LimitSummary, 'shares' | 'evidence'>;

/** The minimum share of a listed cause, in percent. */
const MIN_PERCENT = 1;
/** The lead of the main cause that the server calls medium confidence, in percentage points. */
const MIN_LEAD = 10;
const CAUSES = Object.keys(LIMIT_TEXTS) as readonly LimitClass[];

/** Returns the name of a cause, or `null` if only a newer server knows the cause. */
export function limitLabel(cause: LimitClass): string | null {
  return findOwnProperty(LIMIT_TEXTS, cause)?.label() ?? null;
}

/** Returns the causes with at least 1 % of the time, the largest first. */
export function listLimitShares(limits: Limits): LimitShare[] {
  return CAUSES.map((cause) => ({ cause, percent: shareOf(limits, cause) }))
    .filter(({ percent }) => percent >= MIN_PERCENT)
    .sort((a, b) => b.percent - a.percent);
}

/** Returns whether the first cause leads by as much as is needed for evidence and advice. */
export function isMainCauseClear([first, second]: readonly LimitShare[]): boolean {
  return (first?.percent ?? 0) - (second?.percent ?? 0) >= MIN_LEAD;
}

/** Returns text such as `host-bound 62 %, tensor-bound 30 %`. */
export function describeLimitShares(shares: readonly LimitShare[]): string {
  return joinParts(shares.map(formatLimitShare), ', ').toLowerCase();
}

/**
 * Describes a cause. Returns `null` if the GPU is idle, if nothing shows what limits it, or if only
 * a newer server knows the cause.
 */
export function describeLimit(share: LimitShare, evidence: LimitEvidence): LimitDescription | null {
  const { cause } = share;
  const text = formatLimitShare(share);
  return text === '' || cause === 'idle' || cause === 'unknown'
    ? null
    : { text, ...explainLimit(cause, evidence) };
}

/** Returns the evidence for a cause and the advice. */
export function explainLimit(
  cause: LimitClass,
  known: LimitEvidence,
): Pick<LimitDescription, 'evidence' | 'advice'> {
  const texts = findOwnProperty(LIMIT_TEXTS, cause);
  const evidence = known as Required<LimitEvidence>;
  return {
    evidence: joinParts(texts?.evidence(evidence) ?? [], ' '),
    advice: joinParts(texts?.advice(evidence) ?? [], ' '),
  };
}

/**
 * Describes the main cause that limits a GPU now. If the readings hardly distinguish it from other
 * causes, names the first two causes without evidence and advice. Returns `null` if there is no
 * cause. The server sends this reading for at most half a minute.
 */
export function describeMainLimit(gpu: GpuSample | null): LimitDescription | null {
  const limits = valueOf(gpu?.limits);
  if (limits === null) {
    return null;
  }
  const { main, confidence, evidence } = limits;
  const limit = describeLimit({ cause: main, percent: shareOf(limits, main) }, evidence);
  if (limit === null || confidence !== 'low') {
    return limit;
  }
  const others = listLimitShares(limits).filter(({ cause }) => cause !== main);
  const second = describeLimitShares(others.slice(0, 1));
  return { text: joinParts([limit.text, second], ', '), evidence: '', advice: '' };
}

/**
 * Returns a summary that another page or version may have stored, or `null` if its format is
 * unknown.
 */
export function parseLimitSummary(stored: unknown): MeasuredLimits | null {
  const { shares, evidence } = Object(stored) as Record<keyof MeasuredLimits, unknown>;
  const isShare = (share: unknown): boolean => {
    const { cause, percent } = Object(share) as Record<keyof LimitShare, unknown>;
    return typeof cause === 'string' && typeof percent === 'number';
  };
  const isSummary =
    Array.isArray(shares) &&
    shares.every(isShare) &&
    typeof evidence === 'object' &&
    evidence !== null;
  return isSummary ? (stored as MeasuredLimits) : null;
}

function formatLimitShare({ cause, percent }: LimitShare): string {
  const label = limitLabel(cause);
  return label === null ? '' : `${label} ${formatPercent(percent)}`;
}

function shareOf(limits: Limits, cause: LimitClass): number {
  return valueOf(limits[`${cause}_percent`]) ?? 0;
}
