/**
 * Tests of the charts on the standalone page: all metrics, and the history from before the charts
 * were opened.
 */

import { describe, expect } from 'vitest';

import { findViolations } from './axe';
import { it as base } from './fixtures';
import { GpumonServer } from './gpumon';

/** The time for which the server has samples before the charts are opened. */
const PAST_MS = 8000;

/** The maximum time until a chart is drawn. */
const DRAWN_MS = 3000;

/** A server that has been running for a while. All tests of this file share it. */
const it = base.extend('server', { scope: 'file' }, async ({}, { onCleanup }) => {
  const server = await GpumonServer.start({ GPUMON_SOURCE: 'sim:2' });
  onCleanup(() => server.stop());
  await new Promise((resolve) => setTimeout(resolve, PAST_MS));
  return server;
});

describe('charts page', () => {
  it.afterEach(({ conduct }) => expect(conduct).toEqual({ errors: [], foreignRequests: [] }));

  it('charts of GPU and machine open with history', async ({ page, charts, server }) => {
    await page.goto(server.url);
    await page.locator('[data-gpu-index="1"]').getByRole('button', { name: 'Open charts' }).click();
    await charts.waitUntilLive();
    await expect.poll(() => page.url()).toMatch(/#charts\?gpu=1$/);
    for (const name of [
      'activity',
      'limits',
      'memory',
      'power',
      'temperature',
      'clocks',
      'pcie',
      'nvlink',
      'units',
      'engines',
    ]) {
      await expect.poll(() => charts.chartNames()).toContain(`gpu 1 ${name}`);
    }
    for (const name of ['cpu', 'ram', 'disk', 'network']) {
      await expect.poll(() => charts.chartNames()).toContain(`host ${name}`);
    }
    expect((await charts.chartNames()).filter((name) => name.startsWith('gpu 0'))).toEqual([]);
    await expect
      .poll(async () => (await charts.readLegend('gpu 1 pcie'))[0])
      .toMatch(/^RX \d.* [kMG]B\/s$/);
    // The chart covers 2 min. The 8 s of history that were recorded before the page was opened must
    // fill the last fifteenth of the chart.
    await expect
      .poll(() => charts.shareOfDrawnColumns('gpu 1 clocks', [0.95, 0.99]))
      .toBeGreaterThan(0.8);
    await expect
      .poll(() => charts.shareOfDrawnColumns('gpu 1 nvlink', [0.95, 0.99]))
      .toBeGreaterThan(0.8);
    await page.getByRole('link', { name: 'all GPUs' }).click();
    await page.locator('[data-testid=gpumon] [data-gpu-index="0"]').waitFor();
  });

  it('drag zooms all charts, restored from URL', async ({ page, charts, server }) => {
    await page.goto(`${server.url}#charts?gpu=0&charts=power,cpu&span=1`);
    await charts.waitUntilLive();
    await expect.poll(() => charts.chartNames()).toEqual(['gpu 0 power', 'host cpu']);
    const resume = charts.findButton('Resume');
    const zoom = async (): Promise<boolean> => {
      if ((await resume.count()) > 0) {
        await resume.click();
      }
      const box = await charts.findPlot('host cpu').locator('canvas').boundingBox();
      const { x = 0, y = 0, width = 0 } = box ?? {};
      await page.mouse.move(x + width * 0.9, y + 40);
      await page.mouse.down();
      await page.mouse.move(x + width * 0.97, y + 40, { steps: 4 });
      await page.mouse.up();
      await expect.poll(() => charts.pausedSpan()).toMatch(/^\d\d:\d\d:\d\d to \d\d:\d\d:\d\d$/);
      await page.mouse.move(0, 0);
      // The zoom selects a span in the last tenth of the previous chart. The line must fill the new
      // chart; a late sample would leave a gap.
      const filled = expect.poll(() => charts.shareOfDrawnColumns('gpu 0 power', [0.3, 0.9]), {
        timeout: DRAWN_MS,
      });
      return filled.toBeGreaterThan(0.9).then(
        () => true,
        () => false,
      );
    };
    await expect.poll(zoom).toBe(true);
    const seen = await charts.pausedSpan();
    await page.reload();
    await charts.waitUntilLive();
    await expect.poll(() => charts.pausedSpan()).toBe(seen);
    await resume.click();
    await expect.poll(() => charts.pausedSpan()).toBe('');
    await expect.poll(() => page.url()).toMatch(/#charts\?gpu=0&charts=power,cpu&span=1$/);
  });

  it('wheel, pinch, axis and keys zoom', async ({ page, charts, server }) => {
    await page.goto(`${server.url}#charts?charts=power,cpu`);
    await charts.waitUntilLive();
    const {
      x = 0,
      y = 0,
      width = 0,
      height = 0,
    } = (await charts.findPlot('host cpu').locator('canvas').boundingBox()) ?? {};
    await page.mouse.move(x + width * 0.7, y + 40);
    await page.mouse.wheel(0, -240);
    await page.waitForTimeout(500);
    expect(await charts.pausedSpan()).toBe('');
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -240);
    await expect.poll(() => charts.pausedSpan()).toMatch(/ to /);
    await page.mouse.wheel(0, 480);
    await page.keyboard.up('Control');
    await expect.poll(() => charts.pausedSpan()).toBe('');

    await charts
      .findPlot('host cpu')
      .locator('.gpumon-plot-chart')
      .evaluate((host) => {
        const finger = (type: string, pointerId: number, clientX: number): boolean =>
          host.dispatchEvent(
            new PointerEvent(type, { pointerId, pointerType: 'touch', clientX, bubbles: true }),
          );
        const { left, width } = host.getBoundingClientRect();
        finger('pointerdown', 11, left + width * 0.4);
        finger('pointerdown', 12, left + width * 0.6);
        finger('pointermove', 12, left + width * 0.9);
        finger('pointerup', 11, left);
        finger('pointerup', 12, left);
      });
    await expect.poll(() => charts.pausedSpan()).toMatch(/ to /);
    await page.mouse.dblclick(x + width * 0.7, y + 40);
    await expect.poll(() => charts.pausedSpan()).toBe('');

    await page.mouse.move(x + 20, y + height * 0.1);
    await page.mouse.down();
    await page.mouse.move(x + 20, y + height * 0.5, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => page.url()).toMatch(/axes=cpu:[\d.]+:[\d.]+$/);
    await charts.root.press('y');
    await expect.poll(() => page.url()).toMatch(/fit=1&axes=/);
    await charts.root.press('0');
    await expect.poll(() => page.url()).toMatch(/charts=power,cpu$/);
    await charts.root.press('-');
    await expect.poll(() => page.url()).toMatch(/span=5$/);
    await charts.root.press('?');
    await charts.root.getByText('Move in time').waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => charts.root.getByText('Move in time').isVisible()).toBe(false);
  });

  it('added and moved charts survive reload', async ({ page, charts, server }) => {
    await page.goto(`${server.url}#charts?charts=power.draw_watts,memory.used_bytes,cpu`);
    await charts.waitUntilLive();
    await charts.openMenu('Charts');
    await charts.root.getByLabel('Add a chart').selectOption({ label: 'Free memory' });
    await page.keyboard.press('Escape');
    await expect
      .poll(() => charts.readLegend('all memory.free_bytes'))
      .toContainEqual(expect.stringMatching(/^0 .*GiB$/));
    await charts
      .findPlot('all memory.free_bytes')
      .getByRole('heading')
      .dragTo(charts.findPlot('all power.draw_watts'), { targetPosition: { x: 20, y: 60 } });
    const wanted = [
      'all memory.free_bytes',
      'all power.draw_watts',
      'all memory.used_bytes',
      'host cpu',
    ];
    await expect.poll(() => charts.chartNames()).toEqual(wanted);
    await expect.poll(() => page.url()).toMatch(/charts=memory\.free_bytes,power/);
    await page.reload();
    await charts.waitUntilLive();
    await expect.poll(() => charts.chartNames()).toEqual(wanted);
  });

  it('charts with open menus pass axe accessibility check', async ({ page, charts, server }) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.goto(`${server.url}#charts?hide=1`);
      await page.reload();
      await charts.waitUntilLive();
      const menus = charts.root.locator('.gpumon-controls summary');
      const chartMenu = charts.findPlot('all power.draw_watts').getByLabel('Chart menu');
      for (const menu of [...(await menus.all()), chartMenu]) {
        await menu.click();
        expect(await findViolations(page, '[data-testid=gpumon-dashboard]')).toEqual([]);
        await page.keyboard.press('Escape');
      }
    }
  });

  it('charts are copied as table and image', async ({ page, charts, server }) => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.goto(`${server.url}#charts?charts=power&hide=1`);
    await charts.waitUntilLive();
    const plot = charts.findPlot('all power.draw_watts');
    await plot.getByLabel('Chart menu').click();
    const copy = async (kind: string): Promise<void> => {
      await plot.getByRole('button', { name: `Copy as ${kind}` }).click();
      await expect.poll(() => plot.getByRole('status').innerText()).toBe('Copied to the clipboard');
    };
    await copy('CSV');
    expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(
      /^time,"GPU 0 power.draw_watts"\r\n\d{4}-\d\d-\d\dT[\d:.]+Z,[\d.]+\r\n/,
    );
    await copy('SVG');
    expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(
      /^<svg .*>Power<.*>GPU 0 \d+\sW</,
    );
    await copy('PNG');
    const types = (): Promise<string[]> =>
      page.evaluate(async () => (await navigator.clipboard.read()).flatMap((item) => item.types));
    await expect.poll(types).toContain('image/png');
  });

  it('charts print completely and page is installable', async ({ page, charts, server }) => {
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 900, height: 500 });
    await page.goto(`${server.url}#charts?gpu=0`);
    await charts.waitUntilLive();
    expect(await charts.findPlot('host network').locator('canvas').count()).toBe(0);
    const pdf = await page.pdf({ printBackground: true });
    expect(pdf.length).toBeGreaterThan(50_000);
    await expect.poll(() => charts.findPlot('host network').locator('canvas').count()).toBe(1);
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    expect(await charts.root.getAttribute('data-gpumon-scheme')).toBe('light');
    await page.evaluate(() => dispatchEvent(new Event('afterprint')));
    await page.locator('[data-gpumon-scheme=dark]').waitFor();
    const manifest = await page.evaluate(async () => {
      const link = document.querySelector<HTMLLinkElement>('link[rel=manifest]');
      const response = await fetch(link?.href ?? '');
      return {
        type: response.headers.get('content-type'),
        ...((await response.json()) as { display: string }),
      };
    });
    expect(manifest).toMatchObject({ type: 'application/manifest+json', display: 'standalone' });
    const session = await page.context().newCDPSession(page);
    const { installabilityErrors } = (await session.send('Page.getInstallabilityErrors')) as {
      installabilityErrors: { errorId: string }[];
    };
    // The test page is in a private window, where no page can be installed as an app, so this error
    // is ignored.
    expect(
      installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== 'in-incognito'),
    ).toEqual([]);
  });

  it('charts have common pointer time and pause together', async ({ page, charts, server }) => {
    await page.goto(`${server.url}#charts?view=apart&charts=temperature,power&span=5`);
    await charts.waitUntilLive();
    const box = await charts.findPlot('gpu 0 power').locator('canvas').boundingBox();
    const { x = 0, y = 0, width = 0 } = box ?? {};
    await page.mouse.move(x + width * 0.3, y + 40);
    // The server was not yet running at this time, so there are no readings.
    await expect
      .poll(() => charts.readLegend('gpu 1 temperature'))
      .toEqual([expect.stringMatching(/^GPU –/), expect.stringMatching(/^Memory –/)]);
    await page.mouse.move(x + width * 0.975, y + 40);
    await expect
      .poll(() => charts.readLegend('gpu 1 temperature'))
      .toContainEqual(expect.stringMatching(/^GPU \d+ °C$/));
    const tooltip = charts.root.locator('.gpumon-tooltip');
    await expect
      .poll(() => tooltip.innerText())
      .toMatch(/^\d\d:\d\d:\d\d\s+\w+\s+\d+\s+W\s+\w+\s+\d+\s+W/);
    await page.mouse.move(0, 0);
    await expect.poll(() => tooltip.count()).toBe(0);
    await charts.findButton('Pause').click();
    await expect.poll(() => charts.pausedSpan()).toMatch(/\d/);
    const held = await charts.pausedSpan();
    await page.waitForTimeout(2500);
    expect(await charts.pausedSpan()).toBe(held);
    await charts.findButton('Resume').click();
    await charts.findButton('Overlaid').click();
    await expect.poll(() => charts.chartNames()).toContain('all power.draw_watts');
    await expect
      .poll(() => charts.readLegend('all power.draw_watts'))
      .toEqual([expect.stringMatching(/^0 \d+ W$/), expect.stringMatching(/^1 \d+ W$/)]);
    await charts.findPlot('all power.draw_watts').getByRole('button', { name: /^0/ }).click();
    await expect.poll(() => page.url()).toMatch(/[?&]hide=1&span=5$/);
    await charts.openMenu('GPUs');
    await charts.findButton('0').click();
    await expect.poll(() => charts.chartNames()).toContain('gpu 0 power');
  });
});
