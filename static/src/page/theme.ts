import { Stored } from '../lib/stored';
import { trans } from '../lib/translation';
import type { HeadAction } from '../view/head-action';

const STORED = new Stored('gpumon-theme');

/** The theme of the page, light or dark: the system's, until somebody selects the other one. */
export class Theme {
  /** The state of the last event. Chromium reports no change that was read before. */
  private isSystemDark: boolean;

  constructor(private readonly onChange: () => void) {
    const apply = (): void => this.show(this.isDark);
    const system = matchMedia('(prefers-color-scheme: dark)');
    this.isSystemDark = system.matches;
    system.addEventListener('change', ({ matches }) => {
      this.isSystemDark = matches;
      apply();
    });
    // Paper is white.
    window.addEventListener('beforeprint', () => this.show(false));
    window.addEventListener('afterprint', apply);
    apply();
  }

  headAction(): HeadAction {
    return {
      id: 'gpumon-theme',
      icon: 'page-theme',
      label: this.isDark ? trans.__('Switch to light theme') : trans.__('Switch to dark theme'),
      onClick: () => {
        const isDark = !this.isDark;
        // With the system's theme selected again, the page follows the system.
        STORED.set(isDark === this.isSystemDark ? null : nameOf(isDark));
        this.show(isDark);
      },
    };
  }

  private get isDark(): boolean {
    const stored = STORED.get();
    return stored === 'dark' || (stored !== 'light' && this.isSystemDark);
  }

  private show(isDark: boolean): void {
    document.documentElement.dataset.theme = nameOf(isDark);
    this.onChange();
  }
}

function nameOf(isDark: boolean): string {
  return isDark ? 'dark' : 'light';
}
