/** What is the matter with a GPU: one line each, the worst first. */

import { h, keyed, setAttribute, setShown, setText } from '../lib/dom';
import type { Concern } from '../model/condition';
import { severityIcon, spokenSeverity } from './severity-icon';

interface Line {
  element: HTMLElement;
  level: HTMLElement;
  text: HTMLElement;
  since: HTMLElement;
}

export class Concerns {
  readonly element = h('ul', { class: 'gpumon-alerts' });
  private readonly lines = new Map<string, Line>();

  update(concerns: readonly Concern[]): void {
    setShown(this.element, concerns.length > 0);
    const lines = keyed(this.element, this.lines, concerns, ({ key }) => key, newLine);
    lines.forEach((line, i) => {
      const concern = concerns[i];
      if (concern === undefined) {
        return;
      }
      setAttribute(line.element, 'data-level', concern.level);
      // A closed card cuts long lines, so the title has all of it.
      setAttribute(line.element, 'title', `${concern.text}\n${concern.title}`);
      setText(line.level, spokenSeverity(concern.level));
      setText(line.text, concern.text);
      setText(line.since, ` (${concern.title})`);
    });
  }
}

function newLine(): Line {
  const level = h('span', { class: 'gpumon-spoken' });
  const text = h('span', {});
  const since = h('span', { class: 'gpumon-spoken' });
  const words = h('span', { class: 'gpumon-alert-text' }, level, text, since);
  return { element: h('li', { class: 'gpumon-alert' }, severityIcon(), words), level, text, since };
}
