/** Tests of the page and its charts in Firefox, over WebDriver BiDi. */

import { launch, type Browser, type Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';

import { GpumonServer } from '../src/gpumon';
import { firefoxPath } from '../src/machine';
import { TIMEOUT_MS } from '../src/patience';

let server: GpumonServer;
let browser: Browser;
let page: Page;
/** Errors on the console, uncaught exceptions, and violations of the content security policy. */
let errors: string[];

beforeAll(async () => {
  server = await GpumonServer.start({ GPUMON_SOURCE: 'sim:2' });
  browser = await launch({
    browser: 'firefox',
    executablePath: firefoxPath(),
    headless: true,
    timeout: TIMEOUT_MS,
  });
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

beforeEach(async () => {
  errors = [];
  page = await browser.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  await page.setViewport({ width: 1400, height: 900 });
  page.on('console', (message) => {
    if (message.type() === 'error') {
      errors.push(message.text());
    }
  });
  page.on('pageerror', (error) => errors.push(String(error)));
  await page.evaluateOnNewDocument(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
      console.error(`policy: ${violatedDirective} ${blockedURI}`),
    );
  });
});
afterEach(async () => {
  expect(errors).toEqual([]);
  await page.close();
});

async function open(address: string): Promise<void> {
  await page.goto(`${server.url}${address}`);
  await page.waitForSelector('[data-gpumon-state=live]');
}

function textOf(selector: string): Promise<string> {
  return page.$eval(selector, (element) => element.textContent);
}

/** Returns the image of a canvas, and the number of its pixels that are not empty. */
function readCanvas(selector: string): Promise<{ picture: string; pixels: number }> {
  return page.$eval(selector, (element) => {
    const canvas = element as unknown as HTMLCanvasElement;
    const data = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data;
    const pixels = (data ?? new Uint8ClampedArray()).filter((value, at) => at % 4 === 3 && value);
    return { picture: canvas.toDataURL(), pixels: pixels.length };
  });
}

async function expectMovement(selector: string): Promise<void> {
  await page.waitForSelector(selector);
  await expect.poll(async () => (await readCanvas(selector)).pixels).toBeGreaterThan(100);
  const { picture } = await readCanvas(selector);
  await expect.poll(async () => (await readCanvas(selector)).picture).not.toBe(picture);
}

it('cards show values with units', async () => {
  await open('');
  const cards = await page.$$('[data-gpu-index]');
  expect(cards).toHaveLength(2);
  for (const [reading, unit] of [
    ['utilization.gpu_percent', '%'],
    ['memory.used_bytes', 'GiB'],
    ['power.draw_watts', 'W'],
    ['temperature.gpu_celsius', '°C'],
  ] as const) {
    const card = await page.waitForSelector(`[data-gpu-index="0"] [data-reading="${reading}"]`);
    const whole = await card?.evaluate((element) => element.parentElement?.textContent);
    expect(whole, reading).toMatch(new RegExp(`^[\\d.,]+[^%]*${unit}`));
  }
});

it('line charts on GPU cards are updated', async () => {
  await open('');
  await expectMovement('[data-gpu-index="0"] [data-metric] canvas');
});

it('charts scroll, and stop while paused', async () => {
  await open('#charts');
  const chart = '[data-plot="all power.draw_watts"] canvas';
  await expectMovement(chart);
  await page.keyboard.press(' ');
  await page.waitForSelector('[data-testid=gpumon-resume]');
  expect(await textOf('.gpumon-status-text')).toMatch(/^Paused \d\d:\d\d:\d\d – \d\d:\d\d:\d\d$/);
  await page.keyboard.press(' ');
  await page.waitForSelector('[data-testid=gpumon-resume]', { hidden: true });
  await expectMovement(chart);
});

it('menu opens with Enter and closes with Escape', async () => {
  await open('#charts');
  const menu = '.gpumon-controls .gpumon-menu';
  await page.focus(`${menu} > summary`);
  await page.keyboard.press('Enter');
  await page.waitForSelector(`${menu}[open] > div`);
  const { left, right, width } = await page.$eval(`${menu}[open] > div`, (content) => {
    const box = content.getBoundingClientRect();
    return { left: box.left, right: box.right, width: window.innerWidth };
  });
  expect([left >= 0, right <= width]).toEqual([true, true]);
  await page.keyboard.press('Escape');
  await page.waitForSelector(`${menu}:not([open])`);
  expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('SUMMARY');
});

it('charts have own URL, back returns to overview', async () => {
  await open('');
  await page.click('[data-testid=gpumon-charts]');
  await page.waitForSelector('.gpumon-dashboard[data-gpumon-state=live]');
  expect(new URL(page.url()).hash).toMatch(/^#charts/);
  await page.evaluate(() => history.back());
  await page.waitForSelector('[data-testid=gpumon][data-gpumon-state=live]');
});

it('content security policy is strict', async () => {
  const response = await page.goto(server.url);
  const policy = response?.headers()['content-security-policy'] ?? '';
  expect(policy).toContain("default-src 'self'");
  expect(policy).not.toContain('unsafe');
  await page.waitForSelector('[data-gpumon-state=live]');
  // The content security policy must refuse a style attribute.
  const isRefused = await page.evaluate(() => {
    const element = document.createElement('p');
    element.setAttribute('style', 'display: none');
    return element.style.display === '';
  });
  expect(isRefused).toBe(true);
  await expect.poll(() => errors).not.toEqual([]);
  errors = [];
});
