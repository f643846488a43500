import type { ComponentChild } from 'preact';

import { lazyTexts, trans } from '../lib/translation';

const LABELS = lazyTexts((): Partial<Record<string, string>> => ({
  critical: trans.__('Critical:'),
  warning: trans.__('Warning:'),
  notice: trans.__('Notice:'),
}));

/**
 * Returns the text that screen readers read instead of the icon. Without a severity, the text is
 * empty.
 */
export function severityLabel(level: string): string {
  const label = LABELS()[level];
  return label === undefined ? '' : `${label} `;
}

/**
 * The icon of a severity: an octagon, a triangle or a disc, so that levels differ by more than
 * color. The nearest parent with `data-level` determines its shape and color.
 */
export function SeverityIcon(): ComponentChild {
  return <span class="gpumon-severity-icon" aria-hidden="true" />;
}
