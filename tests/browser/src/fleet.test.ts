/**
 * Tests of the fleet's page, with a generated fleet of thousands of GPUs, and with a real server
 * and real nodes.
 */

import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { generateFleet } from '../../../static/src/testing/fleet';
import { findViolations } from './axe';
import { FakeFleet } from './fake-fleet';
import { FakePrometheus } from './fake-prometheus';
import { it } from './fixtures';
import { GpumonServer } from './gpumon';
import { JupyterServer } from './jupyter';
import { Lab } from './lab';

const EVIL = '<img src=x onerror="document.title=\'hacked\'">';

class Fleet {
  readonly root: Locator;
  readonly map: Locator;
  readonly detail: Locator;
  readonly count: Locator;
  readonly filter: Locator;

  constructor(private readonly page: Page) {
    this.root = page.getByTestId('gpumon-fleet');
    this.map = page.getByTestId('gpumon-fleet-map');
    this.detail = page.getByTestId('gpumon-fleet-detail');
    this.count = page.getByTestId('gpumon-fleet-count');
    this.filter = page.getByLabel('Filter GPUs');
  }

  async waitUntilReady(state = 'live'): Promise<void> {
    await this.page.locator(`[data-testid=gpumon-fleet][data-state=${state}]`).waitFor();
  }

  /** Returns whether the map has more than one color. */
  async isDrawn(): Promise<boolean> {
    return this.map.locator('canvas').evaluate((canvas: HTMLCanvasElement) => {
      const data =
        canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
      const colors = new Set<number>();
      for (let at = 0; at < data.length; at += 4) {
        colors.add(((data[at] ?? 0) << 16) | ((data[at + 1] ?? 0) << 8) | (data[at + 2] ?? 0));
      }
      return colors.size > 10;
    });
  }

  findTab(name: string): Locator {
    return this.page.getByRole('tab', { name, exact: true });
  }

  async readName(): Promise<string> {
    return this.detail.getByRole('heading').innerText();
  }
}

describe('fleet of 8,000 GPUs', () => {
  let server: FakeFleet;
  let fleet: Fleet;
  let page: Page;

  it.beforeEach(async ({ page: opened }) => {
    page = opened;
    server = await FakeFleet.start(generateFleet({ nodes: 1000, gpus: 8, at_ms: Date.now() }));
    fleet = new Fleet(page);
  });
  it.afterEach(async () => {
    await server.stop();
  });

  const open = async (address = ''): Promise<void> => {
    await page.goto(`${server.url}#fleet${address === '' ? '' : `?${address}`}`);
    await fleet.waitUntilReady();
  };

  it('map is readable in light and dark', async ({ conduct }) => {
    await open();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.locator(`[data-gpumon-scheme=${colorScheme}]`).waitFor();
      await expect.poll(() => fleet.isDrawn()).toBe(true);
    }
    expect(conduct.foreignRequests).toEqual([]);
    // The fake server has no stream, so the errors about missing streams are expected.
    expect(conduct.errors.filter((error) => !/WebSocket|404/.test(error))).toEqual([]);
  });

  it('all views pass the axe accessibility check', async () => {
    await open('node=node-0412&gpu=3');
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.locator(`[data-gpumon-scheme=${colorScheme}]`).waitFor();
      for (const view of ['Map', 'Nodes', 'GPUs', 'Users', 'Find free GPUs', 'Events']) {
        await fleet.findTab(view).click();
        await page.locator('[role=tab][aria-selected=true]', { hasText: view }).waitFor();
        expect(await findViolations(page, '[data-testid=gpumon-fleet]'), view).toEqual([]);
      }
    }
  });

  it('node is opened and closed with the keyboard', async () => {
    await open();
    await page.keyboard.press('/');
    await page.keyboard.type('h100 busy');
    await expect.poll(() => fleet.count.innerText()).toMatch(/^[\d,]+ of 8,000$/);
    await page.keyboard.press('Enter');
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => fleet.readName()).toMatch(/^node-\d{4} \/ \d$/);
    const first = await fleet.readName();
    await page.keyboard.press('ArrowDown');
    await expect.poll(() => fleet.readName()).not.toBe(first);
    const name = await fleet.readName();
    const [node = ''] = name.split(' ');
    await expect.poll(() => page.url()).toContain(`node=${node}`);
    const left = page.url();
    await page.keyboard.press('Enter');
    await page.waitForURL(`${server.url}nodes/${node}/`);
    // The node's page has a link back to the fleet.
    await page.getByTestId('gpumon-fleet-link').click();
    // The pointer must not stay on the map, because the details would show the GPU under the
    // pointer instead of the selected one.
    await page.mouse.move(5, 5);
    await page.waitForURL(left);
    await fleet.waitUntilReady();
    await expect.poll(() => fleet.readName()).toBe(name);
    expect(await fleet.filter.inputValue()).toBe('h100 busy');
    await page.keyboard.press('Escape');
    await expect.poll(() => fleet.readName()).toBe('All matching GPUs');
  });

  it('scroll position is restored', async () => {
    await open('view=gpus');
    await page.mouse.move(400, 600);
    await page.mouse.wheel(0, 6000);
    await expect.poll(() => page.evaluate(() => scrollY)).toBeGreaterThan(5000);
    const top = await page.evaluate(() => scrollY);
    const link = page
      .locator('[data-testid=gpumon-fleet-gpus] .gpumon-table-node')
      .filter({ visible: true });
    const places = await link.evaluateAll((all) =>
      all.map((one) => one.getBoundingClientRect().top),
    );
    await link.nth(places.findIndex((place) => place > 300)).click();
    await page.waitForURL(/\/nodes\/node-\d+\/$/);
    await page.getByTestId('gpumon-fleet-link').click();
    await fleet.waitUntilReady();
    await expect.poll(() => page.evaluate(() => scrollY)).toBe(top);
  });

  it('keys sort all GPUs with few rows', async () => {
    await open('view=gpus');
    const table = page.getByTestId('gpumon-fleet-gpus');
    // The header and the sums also count as rows.
    expect(await table.getAttribute('aria-rowcount')).toBe('8002');
    expect(await table.locator('tbody tr').count()).toBeLessThan(120);
    await table.getByRole('button', { name: 'Temperature' }).focus();
    await page.keyboard.press('Enter');
    await table.locator('th[aria-sort=descending]', { hasText: 'Temperature' }).waitFor();
    await table.focus();
    await page.keyboard.press('End');
    await expect
      .poll(() => table.locator('tr[aria-selected=true]').getAttribute('aria-rowindex'))
      .toBe('8001');
    const box = await table.locator('tr[aria-selected=true]').boundingBox();
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThan(901);
  });

  it('pointed GPU is shown in tip and details', async () => {
    await open();
    await expect.poll(() => fleet.isDrawn()).toBe(true);
    const before = await fleet.detail.boundingBox();
    await fleet.map.hover({ position: { x: 100, y: 100 } });
    const tip = await page.locator('.gpumon-map-tip').innerText();
    expect(tip.startsWith(await fleet.readName())).toBe(true);
    // The selection must not move the details.
    expect((await fleet.detail.boundingBox())?.y).toBe(before?.y);
    await page.mouse.move(5, 5);
    await expect.poll(() => fleet.readName()).toBe('All GPUs');
  });

  it('all views fit on a phone', async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await open('node=node-0412&gpu=3');
    for (const view of ['Map', 'Nodes', 'GPUs', 'Users', 'Jobs', 'Find free GPUs', 'Events']) {
      await fleet.findTab(view).click();
      await page.locator('[role=tab][aria-selected=true]', { hasText: view }).waitFor();
      expect(
        await page.evaluate(() => document.documentElement.scrollWidth),
        view,
      ).toBeLessThanOrEqual(360);
    }
    await fleet.findTab('Map').click();
    await expect.poll(() => fleet.isDrawn()).toBe(true);
    const box = await fleet.detail.boundingBox();
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThan(741);
  });

  it('tables fit at any width', async () => {
    await open('view=nodes');
    for (const width of [740, 1000, 1100, 1280, 1440]) {
      await page.setViewportSize({ width, height: 740 });
      for (const view of ['Nodes', 'GPUs', 'Users']) {
        await fleet.findTab(view).click();
        const table = page
          .locator('[data-testid=gpumon-fleet] .gpumon-table')
          .filter({ visible: true })
          .first();
        const over = (): Promise<number> =>
          table.evaluate(
            (element) => element.clientWidth - (element.parentElement?.clientWidth ?? 0),
          );
        await expect.poll(over, { message: `${view} at ${width} px` }).toBeLessThanOrEqual(0);
      }
    }
  });

  it('values are kept while the server fails', async () => {
    await open('view=nodes');
    const fail = server.answer;
    server.answer = (request, response) => {
      if (request.url?.includes('/api/') !== true) {
        return false;
      }
      response.writeHead(502).end('the proxy has no answer\n');
      return true;
    };
    server.fleet = { ...server.fleet, refresh_s: 5 };
    await page.reload();
    await fleet.waitUntilReady('error');
    await page.getByTestId('gpumon-fleet-notice').getByText('the proxy has no answer').waitFor();
    server.answer = fail;
    await page.getByRole('button', { name: 'Retry now' }).click();
    await fleet.waitUntilReady('live');
    server.fleet = {
      ...server.fleet,
      state: 'outdated',
      at_ms: Date.now() - 600_000,
      problems: ['Prometheus is down.'],
    };
    await fleet.waitUntilReady('outdated');
    await page.getByTestId('gpumon-fleet-notice').getByText('Prometheus is down.').waitFor();
    expect(await page.locator('[data-tile=gpus] .gpumon-tile-value').innerText()).toBe('8,000');
  });

  it('hostile names are shown as text', async () => {
    server.fleet = generateFleet({
      nodes: 4,
      gpus: 2,
      at_ms: Date.now(),
      nameOf: (node) => `${EVIL}${node}`,
    });
    server.fleet.owners.forEach((owner) =>
      Object.assign(owner, { user: EVIL, id: EVIL, namespace: EVIL }),
    );
    server.fleet.gpus.models = [EVIL, EVIL, EVIL];
    server.fleet.source.name = EVIL;
    await open(`node=${encodeURIComponent(`${EVIL}0`)}`);
    for (const view of ['Map', 'Nodes', 'GPUs', 'Users', 'Jobs', 'Find free GPUs', 'Events']) {
      await fleet.findTab(view).click();
      await page.locator('[role=tab][aria-selected=true]', { hasText: view }).waitFor();
      expect(await fleet.root.locator('img').count()).toBe(0);
    }
    expect(await page.title()).toBe('gpumon');
  });
});

describe('real fleet', () => {
  it('fleet leads to node stream and back', async ({ page, view }) => {
    const node = await GpumonServer.start({ GPUMON_SOURCE: 'sim:2' });
    // If a host has several nodes, their names contain ports.
    const name = `127.0.0.1:${node.port}`;
    const prometheus = await FakePrometheus.start([name, '127.0.0.1:1'], EVIL);
    const server = await GpumonServer.startFleet([
      '--prometheus',
      prometheus.url,
      '--node-url',
      'http://{host}:{port}/',
    ]);
    try {
      await page.goto(server.url);
      await page.waitForURL(`${server.url}#fleet`);
      const fleet = new Fleet(page);
      await page.locator('[data-testid=gpumon-fleet]:not([data-state=loading])').waitFor();
      await expect
        .poll(() => page.locator('[data-tile=gpus] .gpumon-tile-value').innerText())
        .toBe('4');
      expect(await fleet.root.locator('img').count()).toBe(0);
      await fleet.findTab('Nodes').click();
      await page.getByRole('link', { name }).click();
      await page.waitForURL(`${server.url}nodes/${encodeURIComponent(name)}/`);
      await view.waitUntilLive();
      await view.waitForChange(0, 'power.draw_watts');
      await page.getByTestId('gpumon-fleet-link').click();
      await page.waitForURL(`${server.url}#fleet?view=nodes`);
      await fleet.waitUntilReady();
      prometheus.works = false;
      await fleet.waitUntilReady('outdated');
      expect(await page.locator('[data-tile=gpus] .gpumon-tile-value').innerText()).toBe('4');
    } finally {
      await Promise.all([server.stop(), node.stop(), prometheus.stop()]);
    }
  });

  it('JupyterLab restores fleet and node tabs', async ({ page, conduct }) => {
    const node = await GpumonServer.start({ GPUMON_SOURCE: 'sim:2' });
    const name = '127.0.0.1';
    const prometheus = await FakePrometheus.start([`${name}:${node.port}`]);
    const jupyter = await JupyterServer.start({
      GPUMON_SOURCE: 'sim:2',
      GPUMON_FLEET_PROMETHEUS: prometheus.url,
      GPUMON_FLEET_NODE_URL: 'http://{host}:{port}/',
    });
    try {
      const lab = new Lab(page);
      await lab.open(jupyter.pageUrl('lab'));
      await lab.runCommand('GPU Fleet');
      const fleet = new Fleet(page);
      await fleet.waitUntilReady();
      await fleet.findTab('Nodes').click();
      await page.getByRole('link', { name }).click();
      const panel = page.locator('[id^="gpumon-node-"]:not([id$="-tab"])');
      await panel.locator('[data-gpumon-state=live]').waitFor();
      await panel.getByRole('button', { name: 'Charts', exact: true }).click();
      await panel.locator('.gpumon-dashboard[data-gpumon-state=live]').waitFor();
      await panel.getByRole('button', { name: 'Fleet' }).click();
      await fleet.root.waitFor();
      expect(await fleet.findTab('Nodes').getAttribute('aria-selected')).toBe('true');
      // JupyterLab stores the open tabs with a delay.
      await page.waitForRequest(
        (request) =>
          request.method() === 'PUT' && (request.postData() ?? '').includes('gpumon-fleet'),
      );
      await lab.reload();
      await fleet.waitUntilReady();
      expect(await fleet.findTab('Nodes').getAttribute('aria-selected')).toBe('true');
      expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
    } finally {
      await Promise.all([jupyter.stop(), node.stop(), prometheus.stop()]);
    }
  });
});
