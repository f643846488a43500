/** Screenshots of the output of `gpumon` in a terminal. */

import { execFileSync } from 'node:child_process';

import { expect, it, onTestFinished } from 'vitest';

import { launchBrowser, newPage } from '../src/browser';
import { makeEnvironment, GPUMON } from '../src/machine';
import { parseAnsiSpans } from './ansi';
import { SOURCE, saveImage } from './images';

const COLUMNS = 110;
const STYLE = `
  body { margin: 0; background: #16181d; }
  pre { margin: 0; padding: 18px 22px; width: max-content; color: #d7dae0; font: 14px/1.35 'DejaVu Sans Mono', monospace; }
  .bold { font-weight: bold; } .dim { color: #8b919c; } .underlined { text-decoration: underline; }
  .red { color: #ff6b6b; } .green { color: #7ec77b; } .yellow { color: #e5c07b; } .blue { color: #6cb0f6; }
  .magenta { color: #d99bf0; } .cyan { color: #56c8d8; } .white { color: #ffffff; } .black { color: #5c6370; }
`;

it('image of the table', async () => {
  // script(1) provides a terminal, so that the output fills the width and has colors.
  const command = `stty cols ${COLUMNS}; exec '${GPUMON}' --source ${SOURCE}`;
  const printed = execFileSync(
    'script',
    ['--quiet', '--return', '--command', command, '/dev/null'],
    {
      encoding: 'utf8',
      env: makeEnvironment({ LC_ALL: 'C.UTF-8', TERM: 'xterm-256color' }),
    },
  );
  expect(printed).toContain('\u001B[');
  const browser = await launchBrowser();
  onTestFinished(() => browser.close());
  const { page } = await newPage(browser, {
    viewport: { width: 1200, height: 500 },
    deviceScaleFactor: 1.5,
  });
  await page.setContent(`<style>${STYLE}</style><pre></pre>`);
  const terminal = page.locator('pre');
  await terminal.evaluate(
    (pre, spans) => {
      for (const { text, classes } of spans) {
        const span = document.createElement('span');
        span.className = classes.join(' ');
        span.textContent = text;
        pre.append(span);
      }
    },
    [
      { text: `$ gpumon --source ${SOURCE}\n`, classes: ['dim'] },
      ...parseAnsiSpans(printed.trimEnd()),
    ],
  );
  await saveImage(terminal, 'terminal.png');
});
