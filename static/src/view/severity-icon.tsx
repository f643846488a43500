import type { ComponentChild } from 'preact';

import { lazyTexts, trans } from '../lib/translation';

const LABELS = lazyTexts((): Partial<Record<string, string>> => ({
  critical: trans.__('Critical:'),
  warning: trans.__('Warning:'),
  notice: trans.__('Notice:'),
}));

/** Returns the text for screen readers that replaces the icon. It is empty without a severity. */
export function severityLabel(level: string): string {
  const label = LABELS()[level];
  return label === undefined ? '' : `${label} `;
}

/**
 * An octagon, a triangle or a disc, so that levels differ by more than color. The nearest parent
 * with `data-level` determines shape and color.
 */
export function SeverityIcon(): ComponentChild {
  return <span class="gpumon-severity-icon" aria-hidden="true" />;
}
