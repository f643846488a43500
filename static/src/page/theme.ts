/** Light or dark: as the system has it, until somebody chooses. */

type Theme = 'light' | 'dark';

const KEY = 'gpumon-theme';

/** Makes the button that changes the theme, and sets the theme that holds now. */
export function themeButton(changed: () => void): HTMLButtonElement {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'page-theme';
  button.dataset.testid = 'gpumon-theme';
  const apply = (): void => {
    const theme = chosen() ?? systemTheme(system);
    const other = opposite(theme);
    document.documentElement.dataset.theme = theme;
    button.setAttribute('aria-label', `Switch to ${other} theme`);
    button.title = `Switch to ${other} theme`;
    changed();
  };
  button.addEventListener('click', () => {
    const other = opposite(chosen() ?? systemTheme(system));
    // Back at what the system has, the choice is over, and the page follows the system again.
    choose(other === systemTheme(system) ? null : other);
    apply();
  });
  system.addEventListener('change', apply);
  // Paper is white, and ink costs money.
  window.addEventListener('beforeprint', () => {
    document.documentElement.dataset.theme = 'light';
    changed();
  });
  window.addEventListener('afterprint', apply);
  apply();
  return button;
}

function opposite(theme: Theme): Theme {
  return theme === 'dark' ? 'light' : 'dark';
}

function systemTheme(system: MediaQueryList): Theme {
  return system.matches ? 'dark' : 'light';
}

/** Storage may be forbidden, as in a private window; the theme then lasts as long as the page. */
let fallback: Theme | null = null;

function chosen(): Theme | null {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === 'light' || stored === 'dark' ? stored : null;
  } catch {
    return fallback;
  }
}

function choose(theme: Theme | null): void {
  fallback = theme;
  try {
    if (theme === null) {
      localStorage.removeItem(KEY);
    } else {
      localStorage.setItem(KEY, theme);
    }
  } catch {
    // The fallback holds it.
  }
}
