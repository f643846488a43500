/** Light or dark: as the system has it, until somebody chooses. */

import { button } from '../lib/dom';
import { Stored } from '../lib/stored';

type Theme = 'light' | 'dark';

const STORED = new Stored('gpumon-theme');

/** Makes the button that changes the theme, and sets the theme that holds now. */
export function themeButton(changed: () => void): HTMLButtonElement {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const systemTheme = (): Theme => (system.matches ? 'dark' : 'light');
  const current = (): Theme => chosen() ?? systemTheme();
  const other = (): Theme => (current() === 'dark' ? 'light' : 'dark');
  const show = (theme: Theme): void => {
    document.documentElement.dataset.theme = theme;
    changed();
  };
  const apply = (): void => {
    toggle.title = `Switch to ${other()} theme`;
    toggle.setAttribute('aria-label', toggle.title);
    show(current());
  };
  const toggle = button({ class: 'page-theme', 'data-testid': 'gpumon-theme' }, () => {
    // Back at what the system has, the choice is over, and the page follows the system again.
    STORED.set(other() === systemTheme() ? null : other());
    apply();
  });
  system.addEventListener('change', apply);
  // Paper is white, and ink costs money.
  window.addEventListener('beforeprint', () => show('light'));
  window.addEventListener('afterprint', apply);
  apply();
  return toggle;
}

function chosen(): Theme | null {
  const stored = STORED.get();
  return stored === 'light' || stored === 'dark' ? stored : null;
}
