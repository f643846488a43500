// Opens the page of a fleet in Chromium, and prints durations in milliseconds. The first ones are
// from opening the page until the map is current. The next two are measured after nobody has opened
// the page for a while: from opening it until the map is drawn, and until the map is current. The
// last ones are from a key press in the filter until the next picture.
//
//     node tests/bench/fleet/first-picture.mjs http://127.0.0.1:9725/ [FOLDER for screenshots]

/* global document, Event, HTMLCanvasElement, performance, window */
/* global requestAnimationFrame, setTimeout */

import { chromium } from 'playwright-core';

const [address, folder] = process.argv.slice(2);
const MAPS = {
  drawn: '[data-testid=gpumon-fleet] .gpumon-map > canvas',
  live: '[data-testid=gpumon-fleet][data-state=live] .gpumon-map > canvas',
};
/** A pause after which the server's cached answer about the fleet has expired. */
const UNWATCHED_MS = 45_000;
const TYPED = ['ana', 'h200 busy', 'memory>80GiB', 'node01', 'xid', ''];

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-background-networking',
    '--disable-component-update',
  ],
});
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
await page.addInitScript((maps) => {
  const look = () => {
    for (const [name, selector] of Object.entries(maps)) {
      const map = document.querySelector(selector);
      if (window[name] === undefined && map instanceof HTMLCanvasElement && map.height > 150) {
        requestAnimationFrame((at) => (window[name] = Math.round(at)));
      }
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}, MAPS);
// Loading this page first keeps Chromium's own startup time out of the measurement.
await page.goto(`${address}healthz`);
const open = async () => {
  await page.goto('about:blank');
  await page.goto(`${address}#fleet`);
  const live = await page.waitForFunction(() => window.live, undefined, { timeout: 60_000 });
  return [await page.evaluate(() => window.drawn), await live.jsonValue()];
};
const opened = [];
for (let i = 0; i < 6; i += 1) {
  opened.push((await open())[1]);
}
console.log(`first picture: ${opened[0]} ms, then ${opened.slice(1).join(', ')} ms`);
await page.goto('about:blank');
await new Promise((resolve) => setTimeout(resolve, UNWATCHED_MS));
const [drawn, live] = await open();
console.log(
  `after ${UNWATCHED_MS / 1000} s unwatched: ${drawn} ms, and that of now after ${live} ms`,
);

const times = [];
for (const text of TYPED) {
  for (let end = Math.min(1, text.length); end <= text.length; end += 1) {
    times.push(
      await page.evaluate(
        async (typed) => {
          const input = document.querySelector('.gpumon-fleet-filter');
          await new Promise((resolve) => setTimeout(resolve, 100));
          const begun = performance.now();
          input.value = typed;
          input.dispatchEvent(new Event('input', { bubbles: true }));
          await new Promise(requestAnimationFrame);
          await new Promise(requestAnimationFrame);
          return performance.now() - begun;
        },
        text.slice(0, end),
      ),
    );
  }
}
times.sort((a, b) => a - b);
const at = (share) => Math.round(times[Math.floor((times.length - 1) * share)]);
console.log(`filter: median ${at(0.5)} ms, at most ${at(1)} ms (${times.length} times)`);

if (folder !== undefined) {
  const shots = [
    ['light', 'light', 1440, ''],
    ['dark', 'dark', 1440, ''],
    ['users', 'light', 1440, '?view=users'],
    ['events', 'light', 1440, '?view=events'],
    ['phone', 'dark', 390, ''],
  ];
  for (const [name, colorScheme, width, query] of shots) {
    const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } });
    const shown = await context.newPage();
    await shown.goto(`${address}#fleet${query}`);
    await shown.waitForTimeout(6000);
    await shown.screenshot({ path: `${folder}/${name}.png` });
    await context.close();
  }
}
await browser.close();
