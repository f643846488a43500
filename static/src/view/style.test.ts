import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, it } from 'vitest';

const VIEW_FOLDER = fileURLToPath(new URL('.', import.meta.url));
const SHEETS = new Map(
  readdirSync(join(VIEW_FOLDER, 'style')).map((name) => [name, readText(`style/${name}`)]),
);
/**
 * The style sheets that are loaded together with a part of the view, and a pattern for the source
 * files of that part.
 */
const PARTS = {
  'details.css': /^view\/details\.tsx$/,
  'fleet.css': /^view\/fleet\//,
  'runs.css': /^view\/runs\//,
  'tour.css': /^view\/(tour|dialog-entries)\.tsx$/,
};
const SOURCES = [...sourcesIn('..'), ...sourcesIn('../../../labextension/src')];

function readText(path: string): string {
  return readFileSync(join(VIEW_FOLDER, path), 'utf8');
}

function sourcesIn(folder: string): [name: string, text: string][] {
  return readdirSync(join(VIEW_FOLDER, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && !/\.test\.tsx?$/.test(name))
    .map((name) => [
      name,
      readText(join(folder, name)).replaceAll(/'?data-testid'?[:=] ?['"][^'"]*['"]/g, ''),
    ]);
}

function classesIn(sheet: string): string[] {
  return [...new Set(sheet.match(/(?<=\.)gpumon-[a-z-]+/g))];
}

/**
 * Returns the classes for which a style sheet sets `display`, whatever the parents of the element
 * are.
 */
function classesWithDisplay(sheet: string): string[] {
  const rules = sheet.matchAll(/^(?:\.gpumon )?\.(gpumon-[a-z-]+) \{([^}]*)\}/gm);
  return [...rules].flatMap(([, name = '', body = '']) =>
    /^\s*display:/m.test(body) ? [name] : [],
  );
}

/** Returns the source files in which an element has this class. */
function findFilesWithClass(name: string): string[] {
  // The `id` of an action may look like a class name. It is ignored, because it is not a class.
  const whole = new RegExp(`(?<!\\bid: ')\\b${name}(?![a-z-])`);
  return SOURCES.flatMap(([file, text]) => (whole.test(text) ? [file] : []));
}

/** The style sheets of elements outside a view: below cells, and in JupyterLab's own bars. */
const OUTSIDE_SHEETS = ['notebook.css'];

/** Returns the selectors of a style sheet, including those inside at-rules. */
function selectorsIn(sheet: string): string[] {
  const rules = sheet.replaceAll(/\/\*[^]*?\*\//g, '').matchAll(/([^{};]+)\{/g);
  return [...rules]
    .map(([, prelude = '']) => prelude.trim())
    .filter((prelude) => !prelude.startsWith('@') && !/^(from|to|[\d.]+%)(,|$)/.test(prelude))
    .flatMap((prelude) => prelude.split(/,(?![^(]*\))/))
    .map((selector) => selector.trim().replaceAll(/\s+/g, ' '));
}

it('every JupyterLab CSS rule is scoped to gpumon', () => {
  for (const [name, sheet] of SHEETS) {
    const selectors = selectorsIn(sheet);
    expect(selectors.length, name).toBeGreaterThan(3);
    // Each selector must start with an element of gpumon, so that the style sheet does not affect
    // the embedding page.
    expect(
      selectors.filter(
        (selector) =>
          !/^(?::where\(\[dir='rtl'\]\) )?(?::where\(\.gpumon\) |[a-z]*\.gpumon(?![a-z]))/.test(
            selector,
          ),
      ),
      name,
    ).toEqual([]);
  }
});

it('styles outside views do not affect views', () => {
  for (const name of OUTSIDE_SHEETS) {
    const others = new Set(
      [...SHEETS].flatMap(([other, sheet]) => (other === name ? [] : classesIn(sheet))),
    );
    expect(
      classesIn(SHEETS.get(name) ?? '').filter((one) => others.has(one)),
      name,
    ).toEqual([]);
  }
});

it('only one style sheet sets display of class', () => {
  const all = [...SHEETS.values()].flatMap((sheet) => [...new Set(classesWithDisplay(sheet))]);
  expect(all.filter((name, i) => all.indexOf(name) !== i)).toEqual([]);
});

it('every class in style sheets is used', () => {
  const classes = [...SHEETS.values()].flatMap(classesIn);
  expect(classes.filter((name) => findFilesWithClass(name).length === 0)).toEqual([]);
});

it('lazily loaded styles belong to one part each', () => {
  for (const [part, files] of Object.entries(PARTS)) {
    const others = new Set(
      [...SHEETS].flatMap(([name, sheet]) => (name === part ? [] : classesIn(sheet))),
    );
    const own = classesIn(SHEETS.get(part) ?? '').filter((name) => !others.has(name));
    expect(own.length).toBeGreaterThan(3);
    expect(
      own.filter((name) => findFilesWithClass(name).some((file) => !files.test(file))),
    ).toEqual([]);
  }
});

it('status button fits into the line height', () => {
  const px = (sheet: string, selector: string, property: string): number =>
    Number(
      new RegExp(`(?:^|\\n)${selector} \\{[^}]*\\s${property}: (-?\\d+)px`).exec(
        SHEETS.get(sheet) ?? '',
      )?.[1],
    );
  const around =
    px('base.css', '\\.gpumon button', 'padding') + px('base.css', '\\.gpumon button', 'border');
  expect(px('head.css', '\\.gpumon-status > \\.gpumon-retry', 'margin-block')).toBe(-around);
});

/**
 * The declarations of the page's light and dark theme, which define the colors of texts and
 * backgrounds.
 */
const THEMES = [...readText('../page/page.css').matchAll(/\{([^}]*--gpumon-muted: #[^}]*)\}/g)].map(
  ([, body = '']) => body,
);
const RED = { light: '#c0262d', dark: '#ff8f88' };

function rgbOf(hex: string): number[] {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function luminance(rgb: readonly number[]): number {
  const [r = 0, g = 0, b = 0] = rgb.map((value) => {
    const share = value / 255;
    return share <= 0.040_45 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Returns the WCAG 2 contrast between the color `back` and a text with the given opacity. */
function contrastOf(text: string, back: string, opacity: number): number {
  const behind = rgbOf(back);
  const seen = rgbOf(text).map((value, i) => value * opacity + (behind[i] ?? 0) * (1 - opacity));
  const [a, b] = [luminance(seen), luminance(behind)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

it('outdated values are readable', () => {
  expect(THEMES).toHaveLength(2);
  const rules = [...SHEETS.values()].flatMap((sheet) => [
    ...sheet.matchAll(/([^{}]*)\{([^{}]*)\}/g),
  ]);
  const outdated = rules.filter(([, selector = '']) =>
    /outdated|stale|reconnecting/.test(selector),
  );
  expect(outdated.length).toBeGreaterThan(0);
  for (const [, selector = '', body = ''] of outdated) {
    const opacity = Number(/opacity: ([\d.]+)/.exec(body)?.[1] ?? 1);
    for (const theme of THEMES) {
      const color = (name: string): string =>
        new RegExp(`--gpumon-${name}: (#[0-9a-f]{6})`).exec(theme)?.[1] ?? '';
      const red = luminance(rgbOf(color('card'))) > 0.5 ? RED.light : RED.dark;
      for (const text of [color('text'), color('muted'), red]) {
        for (const back of [color('card'), color('background')]) {
          expect(
            contrastOf(text, back, opacity),
            `${selector.trim()} ${text} on ${back}`,
          ).toBeGreaterThan(4.5);
        }
      }
    }
  }
});
