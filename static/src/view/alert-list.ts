/** The alerts of a GPU: one line each, the worst first. */

import { h, KeyedRows, setAttribute, setShown, setText } from '../lib/dom';
import type { Alert } from '../model/condition';
import { severityIcon, severityLabel } from './severity-icon';

interface Line {
  element: HTMLElement;
  level: HTMLElement;
  text: HTMLElement;
  since: HTMLElement;
}

export class AlertList {
  readonly element = h('ul', { class: 'gpumon-alerts' });
  private readonly lines = new KeyedRows(this.element, ({ key }: Alert) => key, newLine);

  /** `null` takes the list away; without alerts, it keeps its place. */
  update(alerts: readonly Alert[] | null): void {
    setShown(this.element, alerts !== null);
    this.lines.update(alerts ?? [], (line, alert) => {
      setAttribute(line.element, 'data-level', alert.level);
      setAttribute(line.element, 'title', alert.title);
      setText(line.level, severityLabel(alert.level));
      setText(line.text, alert.text);
      setText(line.since, ` (${alert.title})`);
    });
  }
}

function newLine(): Line {
  const level = h('span', { class: 'gpumon-visually-hidden' });
  const text = h('span', {});
  const since = h('span', { class: 'gpumon-visually-hidden' });
  const content = h('span', { class: 'gpumon-alert-text' }, level, text, since);
  return {
    element: h('li', { class: 'gpumon-alert' }, severityIcon(), content),
    level,
    text,
    since,
  };
}
