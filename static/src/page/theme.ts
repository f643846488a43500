import { StoredValue } from '../lib/stored';
import { trans } from '../lib/translation';
import type { HeadAction } from '../view/head-action';

const STORED_THEME = new StoredValue('gpumon-theme');

/**
 * The theme of the page, light or dark. It follows the system's theme until the user selects the
 * other theme.
 */
export class Theme {
  /**
   * The system's theme at the last `change` event. The media query must not be read at other times,
   * because Chromium does not report a change that was already read.
   */
  private isSystemDark: boolean;

  constructor(private readonly onChange: () => void) {
    const apply = (): void => this.applyTheme(this.isDark);
    const system = matchMedia('(prefers-color-scheme: dark)');
    this.isSystemDark = system.matches;
    system.addEventListener('change', ({ matches }) => {
      this.isSystemDark = matches;
      apply();
    });
    // The page is printed in the light theme, because paper is white.
    window.addEventListener('beforeprint', () => this.applyTheme(false));
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
        // If the system's theme is selected again, the page follows the system.
        STORED_THEME.set(isDark === this.isSystemDark ? null : themeName(isDark));
        this.applyTheme(isDark);
      },
    };
  }

  private get isDark(): boolean {
    const stored = STORED_THEME.get();
    return stored === 'dark' || (stored !== 'light' && this.isSystemDark);
  }

  private applyTheme(isDark: boolean): void {
    document.documentElement.dataset.theme = themeName(isDark);
    this.onChange();
  }
}

function themeName(isDark: boolean): string {
  return isDark ? 'dark' : 'light';
}
