/**
 * Tests of charts over time ranges from a second to a month, with a server that keeps its history
 * on disk.
 */

import { execFileSync } from 'node:child_process';

import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { findViolations } from './axe';
import { it as base } from './fixtures';
import { GpumonServer } from './gpumon';
import { newFolder, PYTHON } from './machine';

const SOURCE = { GPUMON_SOURCE: 'sim:2' };
/**
 * The time to wait for the first rows in the database. The server writes them after ten seconds.
 */
const FIRST_ROWS_MS = 25_000;
/** A server that has been running for this long has enough samples for lines. */
const FIRST_SECONDS_MS = 5000;

/**
 * A script that fills the history of both GPUs with a month of power readings. On each day, the
 * means rise from 100 to 600 W and fall again, with minima 50 W below and maxima 50 W above them.
 * One day has no readings.
 */
const FILL_HISTORY_SCRIPT = `
import math, sqlite3, sys, time
database = sqlite3.connect(sys.argv[1])
devices = [id for id, in database.execute("SELECT id FROM device WHERE kind = 'gpu'")]
assert len(devices) == 2, devices
now, day = int(time.time() * 1000), 86_400_000
off = range(now - 12 * day, now - 11 * day)
for name, step, reach in (("10s", 10_000, 2 * day), ("1min", 60_000, 30 * day), ("15min", 900_000, 31 * day)):
    begin, end = (now - reach) // step * step, now - 600_000
    rows = []
    for at in range(begin, end, step):
        if at in off:
            continue
        share = 0.5 - 0.5 * math.cos(2 * math.pi * at / day)
        for device in devices:
            watts = 100 + 500 * share
            rows.append((at, device, step // 1000, watts, max(0, watts - 50), watts + 50))
    machine = [(at, step // 1000, 30, 10, 90) for at in range(begin, end, step) if at not in off]
    columns = "at_ms, samples, host_cpu_busy_percent, host_cpu_busy_percent_min, host_cpu_busy_percent_max"
    database.executemany(f"INSERT OR IGNORE INTO host_{name} ({columns}) VALUES (?, ?, ?, ?, ?)", machine)
    columns = "at_ms, device, samples, power_draw_watts, power_draw_watts_min, power_draw_watts_max"
    database.executemany(f"INSERT OR IGNORE INTO gpu_{name} ({columns}) VALUES (?, ?, ?, ?, ?, ?)", rows)
database.commit()
`;

/** A server with a history of a month, and a server that was just started. */
const it = base
  .extend('server', { scope: 'file' }, async ({}, { onCleanup }) => {
    const folder = newFolder();
    const first = await GpumonServer.start(SOURCE, 0, ['--data-dir', folder]);
    await new Promise((resolve) => setTimeout(resolve, FIRST_ROWS_MS));
    await first.stop();
    execFileSync(PYTHON, ['-c', FILL_HISTORY_SCRIPT, `${folder}/history.db`]);
    const server = await GpumonServer.start(SOURCE, 0, ['--data-dir', folder]);
    onCleanup(() => server.stop());
    return server;
  })
  .extend('young', { scope: 'file' }, async ({}, { onCleanup }) => {
    const server = await GpumonServer.start(SOURCE, 0, ['--data-dir', 'none']);
    onCleanup(() => server.stop());
    return server;
  });

/** Returns a list to which the resolution of each history response is added, in milliseconds. */
function collectHistoryResolutions(page: Page): number[] {
  const seen: number[] = [];
  page.on('response', (response) => {
    if (response.url().includes('api/v1/history') && response.ok()) {
      void response.json().then(
        ({ resolution_ms }: { resolution_ms: number }) => seen.push(resolution_ms),
        () => undefined,
      );
    }
  });
  return seen;
}

describe('charts with history on disk', () => {
  it.afterEach(({ conduct }) => expect(conduct).toEqual({ errors: [], foreignRequests: [] }));

  it('charts zoom from a month to one second', async ({ page, charts, server }) => {
    const seen = collectHistoryResolutions(page);
    await page.goto(`${server.url}#charts?charts=power&view=apart&gpu=0&fit=1`);
    await charts.waitUntilLive();
    await charts.chooseTimeRange(/^30\sd$/);
    await expect.poll(() => page.url()).toMatch(/span=43200/);
    await expect
      .poll(() => charts.shareOfDrawnColumns('gpu 0 power', [0.3, 0.6]))
      .toBeGreaterThan(0.9);
    const {
      x = 0,
      y = 0,
      width = 0,
    } = (await charts.findPlot('gpu 0 power').locator('canvas').boundingBox()) ?? {};
    // The horizontal position of the day without readings, as a share of the canvas width. Lines
    // are only drawn between the value axis at the left and the margin at the right.
    const off = (60 + (18.5 / 30) * (width - 64)) / width;
    await expect
      .poll(() => charts.shareOfDrawnColumns('gpu 0 power', [off - 0.005, off + 0.005]), {
        message: 'the day without power',
      })
      .toBe(0);
    expect(seen.at(-1)).toBeGreaterThan(3_600_000);
    expect(await charts.root.locator('.gpumon-past-note').isVisible()).toBe(false);

    await page.mouse.move(x + width * 0.9, y + 40);
    const tooltip = charts.root.locator('.gpumon-tooltip');
    await expect
      .poll(() => tooltip.innerText())
      .toMatch(
        /^\w+ \d+, \d+ [\d:]+ – [\d:]+\s+mean, lowest – highest\s+Average\s+\d+\sW\s+\d+ – \d+\sW/,
      );
    await expect
      .poll(async () => (await charts.readLegend('gpu 0 power'))[0])
      .toMatch(/^Average \d+ W$/);

    // The user zooms to a day, and then to an hour of the day. The known data must remain visible
    // until the responses arrive.
    await page.mouse.down();
    await page.mouse.move(x + width * 0.93, y + 40, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => charts.pausedSpan()).toMatch(/^\w{3} \d+, \d{4} \d/);
    await expect.poll(() => seen.at(-1)).toBeLessThanOrEqual(900_000);
    for (let presses = 0; presses < 5; presses += 1) {
      await page.keyboard.press('+');
      expect(await charts.shareOfDrawnColumns('gpu 0 power', [0.3, 0.9])).toBeGreaterThan(0.5);
      await expect
        .poll(() => charts.shareOfDrawnColumns('gpu 0 power', [0.3, 0.9]))
        .toBeGreaterThan(0.9);
    }
    await expect.poll(() => seen.at(-1)).toBeLessThanOrEqual(60_000);
    // The URL is updated with a delay after the last key press, so the test waits until it no
    // longer changes.
    let before = '';
    const isSettled = (): boolean => {
      const was = before;
      before = page.url();
      return was === before;
    };
    await expect.poll(isSettled, { interval: 500 }).toBe(true);
    await page.keyboard.down('Shift');
    await page.mouse.move(x + width * 0.5, y + 40);
    await page.mouse.down();
    await page.mouse.move(x + width * 0.7, y + 40, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up('Shift');
    const from = (address: string): number => Number(/from=(\d+)/.exec(address)?.[1]);
    const to = (address: string): number => Number(/to=(\d+)/.exec(address)?.[1]);
    await expect.poll(() => from(page.url())).toBeLessThan(from(before));
    expect(to(page.url()) - from(page.url()), 'moved, not zoomed').toBeCloseTo(
      to(before) - from(before),
      -2,
    );
    await page.keyboard.press('Escape');
    await expect.poll(() => page.url()).toMatch(/span=43200/);
    await expect.poll(() => page.url()).not.toMatch(/from=/);
  });

  it('copied CSV includes lowest and highest values', async ({ page, charts, server }) => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.goto(`${server.url}#charts?charts=power.draw_watts&gpu=0&span=1440`);
    await charts.waitUntilLive();
    await expect
      .poll(() => charts.shareOfDrawnColumns('gpu 0 power.draw_watts', [0.3, 0.6]))
      .toBeGreaterThan(0.9);
    const plot = charts.findPlot('gpu 0 power.draw_watts');
    await plot.getByLabel('Chart menu').click();
    await plot.getByRole('button', { name: 'Copy as CSV' }).click();
    await expect.poll(() => plot.getByRole('status').innerText()).toBe('Copied to the clipboard');
    const [head = '', ...rows] = (await page.evaluate(() => navigator.clipboard.readText())).split(
      '\r\n',
    );
    expect(head).toMatch(
      /^time,"(.*) power\.draw_watts","\1 power\.draw_watts min","\1 power\.draw_watts max"$/,
    );
    expect(rows.length).toBeGreaterThan(90);
    const [, mean, low, high] = rows[20]?.split(',').map(Number) ?? [];
    expect([(mean ?? 0) - (low ?? 0), (high ?? 0) - (mean ?? 0)].every((apart) => apart > 49)).toBe(
      true,
    );
  });

  it('start of recorded history is shown with advice', async ({ page, charts, young }) => {
    await page.goto(`${young.url}#charts?charts=power,cpu&span=10080`);
    await charts.waitUntilLive();
    const note = charts.root.locator('.gpumon-past-note');
    await expect
      .poll(() => note.innerText())
      .toMatch(/^The history starts at .* kept in memory for 6\sh\./);
    expect(await note.locator('code').innerText()).toBe('gpumon serve --data-dir DIR');
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.locator(`[data-gpumon-scheme=${colorScheme}]`).waitFor();
      expect(await findViolations(page, '[data-testid=gpumon-dashboard]')).toEqual([]);
    }
    // The shortest displayed span is one second. Directly after the server's start, there are no
    // samples for most of this span, so the test waits.
    await page.waitForTimeout(FIRST_SECONDS_MS);
    await note.getByRole('button', { name: 'Show the whole history' }).click();
    // The newest sample may be older than a second, so only part of the chart is checked.
    await expect
      .poll(() => charts.shareOfDrawnColumns('all power.draw_watts', [0.4, 0.7]))
      .toBeGreaterThan(0.9);
    await expect.poll(() => note.isVisible()).toBe(false);
  });

  it('server error is shown', async ({ page, charts, young, conduct }) => {
    await page.route('**/api/v1/history*', (route) =>
      route.fulfill({ status: 503, body: 'too many requests\n' }),
    );
    await page.goto(`${young.url}#charts?charts=power&span=60`);
    await charts.waitUntilLive();
    await expect
      .poll(() => charts.root.locator('.gpumon-past-note').innerText())
      .toBe('The history cannot be read. too many requests');
    // The legend must still show the streamed samples.
    await expect.poll(() => charts.readLegend('all power.draw_watts')).toHaveLength(2);
    conduct.errors.length = 0;
  });
});
