// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { setTranslator, trans } from '../../lib/translation';
import { makeFleetResponse, generateFleet, withComputedSums } from '../../testing/fleet';
import { NOW } from '../../testing/frames';
import { showAllOnScreen } from '../../testing/on-screen';
import { pseudoTranslator, textsOf, findUntranslated } from '../../testing/pseudo-locale';
import type { Fleet, FleetUsage } from '../../wire';
import { mountFleet, nodePath, type MountedFleet } from './index';

const english = trans;
const opened: string[] = [];
const addresses: string[] = [];
let host: HTMLElement;
let fleet: Fleet;
let mounted: MountedFleet;
/** If set, overrides the responses of the generated fleet. */
let answer: ((url: URL) => Response | Promise<Response> | null) | null;
let asked: string[];

async function advanceTimers(): Promise<void> {
  await vi.advanceTimersByTimeAsync(400);
}

async function mount(address = ''): Promise<void> {
  mounted = mountFleet(host, {
    title: 'Fleet',
    address,
    request: (path) => {
      const url = new URL(path, 'http://fleet.example/');
      asked.push(path);
      return Promise.resolve(answer?.(url) ?? Response.json(makeFleetResponse(fleet, url)));
    },
    opener: { hrefOf: (node) => nodePath(node) ?? '', open: (node) => opened.push(node) },
    onAddress: (now) => addresses.push(now),
  });
  await advanceTimers();
}

beforeEach(() => {
  showAllOnScreen();
  // jsdom does not implement scrolling.
  Element.prototype.scrollIntoView = vi.fn();
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(null);
  vi.useFakeTimers();
  vi.setSystemTime(NOW);
  host = document.createElement('div');
  document.body.replaceChildren(host);
  fleet = generateFleet({ nodes: 40, gpus: 8, at_ms: NOW });
  answer = null;
  asked = [];
  opened.length = addresses.length = 0;
});
afterEach(() => {
  mounted.dispose();
  setTranslator(english);
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

function find(selector: string): HTMLElement {
  const found = host.querySelector<HTMLElement>(selector);
  if (found === null) {
    throw new Error(`nothing matches ${selector}`);
  }
  return found;
}

/** Returns whether an element is on the page and not hidden. */
function isDisplayed(selector: string): boolean {
  return host.querySelector<HTMLElement>(selector)?.hidden === false;
}

function readText(selector: string): string {
  return find(selector).textContent.replaceAll('\u00a0', ' ');
}

function press(selector: string, key: string): void {
  find(selector).dispatchEvent(
    new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }),
  );
}

async function typeText(value: string): Promise<void> {
  const input = find('.gpumon-fleet-filter') as HTMLInputElement;
  input.value = value;
  input.dispatchEvent(new Event('input', { bubbles: true }));
  await advanceTimers();
}

const rows = (table: string): HTMLElement[] =>
  [...find(`[data-testid=${table}] tbody`).querySelectorAll<HTMLElement>('tr[id]')].filter(
    ({ hidden }) => !hidden,
  );

/** Returns the cells of the column with this header. */
function findCells(table: string, head: string): HTMLElement[] {
  const place = [...find(`[data-testid=${table}] thead tr`).children].findIndex(
    ({ textContent }) => textContent === head,
  );
  return rows(table).map((row) => row.children[place] as HTMLElement);
}

describe('fleet summary', () => {
  it('tiles count GPUs by state and filter', async () => {
    await mount();
    expect(readText('[data-tile=gpus] .gpumon-tile-number')).toBe('320on 40 nodes');
    const many = (tile: string): number =>
      Number(readText(`[data-tile=${tile}] .gpumon-tile-value`));
    expect(many('busy') + many('free') + many('idle') + many('lost')).toBe(320);
    find('[data-tile=free]').click();
    await advanceTimers();
    expect(readText('[data-testid=gpumon-fleet-count]')).toBe(`${many('free')} of 320`);
    expect(find('[data-tile=free]').getAttribute('aria-pressed')).toBe('true');
    expect(addresses.at(-1)).toBe('filter=free');
  });

  it('unknown values are dashes with reasons', async () => {
    const { 'power.draw_watts': power, ...readings } = fleet.gpus.readings;
    expect(power).toHaveLength(320);
    fleet = withComputedSums({
      ...fleet,
      gpus: { ...fleet.gpus, readings },
      missing: { 'power.draw_watts': 'not exported' },
    });
    await mount('view=gpus');
    expect(readText('[data-tile=power] .gpumon-tile-value')).toBe('–');
    expect(find('[data-tile=power]').title).toBe('not exported');
    const [cell] = findCells('gpumon-fleet-gpus', 'Power');
    expect(cell?.textContent).toBe('–');
    expect(cell?.title).toBe('not exported');
  });
});

describe('fleet filter field', () => {
  it('filter shows matches and errors and keeps text', async () => {
    await mount('view=gpus');
    await typeText('node-0007');
    expect(rows('gpumon-fleet-gpus')).toHaveLength(8);
    await typeText('node-0007 memory>80xb');
    expect(readText('.gpumon-fleet-mistake')).toContain('invalid unit xb');
    expect(rows('gpumon-fleet-gpus')).toHaveLength(8);
    expect((find('.gpumon-fleet-filter') as HTMLInputElement).value).toBe('node-0007 memory>80xb');
  });

  it('filter without matches can be cleared', async () => {
    await mount('filter=nobody');
    expect(isDisplayed('[data-testid=gpumon-fleet-nothing]')).toBe(true);
    expect(isDisplayed('[data-testid=gpumon-fleet-map]')).toBe(false);
    find('[data-testid=gpumon-fleet-nothing] button').click();
    await advanceTimers();
    expect(isDisplayed('[data-testid=gpumon-fleet-nothing]')).toBe(false);
    expect(isDisplayed('[data-testid=gpumon-fleet-map]')).toBe(true);
  });

  it('slash key focuses filter, Enter focuses map', async () => {
    await mount();
    press('[data-testid=gpumon-fleet]', '/');
    expect(document.activeElement).toBe(find('.gpumon-fleet-filter'));
    press('.gpumon-fleet-filter', 'Enter');
    expect(document.activeElement).toBe(find('[data-testid=gpumon-fleet-map]'));
  });

  it('Enter applies the latest filter text', async () => {
    await mount('filter=nobody');
    const input = find('.gpumon-fleet-filter') as HTMLInputElement;
    input.value = 'node-0007';
    input.dispatchEvent(new Event('input', { bubbles: true }));
    expect(isDisplayed('[data-testid=gpumon-fleet-map]')).toBe(false);
    press('.gpumon-fleet-filter', 'Enter');
    expect(isDisplayed('[data-testid=gpumon-fleet-map]')).toBe(true);
  });
});

describe('GPU table', () => {
  it('only visible rows are rendered', async () => {
    fleet = generateFleet({ nodes: 1250, gpus: 8, at_ms: NOW });
    await mount('view=gpus');
    expect(find('[data-testid=gpumon-fleet-gpus]').getAttribute('aria-rowcount')).toBe('10002');
    expect(rows('gpumon-fleet-gpus').length).toBeLessThan(100);
  });

  it('header sorts in both directions', async () => {
    await mount('view=gpus');
    const head = [...host.querySelectorAll('[data-testid=gpumon-fleet-gpus] th')].find(
      ({ textContent }) => textContent === 'Temperature',
    );
    const sort = async (): Promise<number[]> => {
      head?.querySelector('button')?.click();
      await advanceTimers();
      return findCells('gpumon-fleet-gpus', 'Temperature').map(({ textContent }) =>
        Number.parseInt(textContent, 10),
      );
    };
    const highest = await sort();
    expect(highest).toEqual([...highest].sort((a, b) => b - a));
    expect(head?.getAttribute('aria-sort')).toBe('descending');
    const lowest = await sort();
    expect(lowest).toEqual([...lowest].sort((a, b) => a - b));
    expect(head?.getAttribute('aria-sort')).toBe('ascending');
    expect(addresses.at(-1)).toBe('view=gpus&sort=-temperature');
  });

  it('keys select rows, Enter opens node', async () => {
    await mount('view=gpus&sort=name');
    press('[data-testid=gpumon-fleet-gpus]', 'ArrowDown');
    await advanceTimers();
    press('[data-testid=gpumon-fleet-gpus]', 'ArrowDown');
    await advanceTimers();
    expect(addresses.at(-1)).toBe('view=gpus&sort=name&node=node-0001&gpu=1');
    expect(readText('[data-testid=gpumon-fleet-detail] h2')).toBe('node-0001 / 1');
    expect(readText('[role=status].gpumon-visually-hidden')).toMatch(/^node-0001 \/ 1: /);
    press('[data-testid=gpumon-fleet-gpus]', 'Enter');
    expect(opened).toEqual(['node-0001']);
    press('[data-testid=gpumon-fleet-gpus]', 'Escape');
    await advanceTimers();
    expect(addresses.at(-1)).toBe('view=gpus&sort=name');
  });
});

it('closed node has reason instead of link', async () => {
  fleet = { ...fleet, nodes: { ...fleet.nodes, unopenable: { 0: 'no server there <b>!</b>' } } };
  await mount('view=nodes&sort=name&node=node-0001');
  expect(find('[data-testid=gpumon-fleet-detail] .gpumon-detail-open').textContent).toBe(
    'Cannot be opened: no server there <b>!</b>',
  );
  const [first, second] = rows('gpumon-fleet-nodes');
  expect(first?.querySelector('a')).toBeNull();
  expect(second?.querySelector('a')?.getAttribute('href')).toBe('nodes/node-0002/');
  press('[data-testid=gpumon-fleet-nodes]', 'Enter');
  await advanceTimers();
  expect(opened).toEqual([]);
  expect(readText('[role=status].gpumon-visually-hidden')).toContain(
    'node-0001 cannot be opened: no server there',
  );
});

describe('usage table', () => {
  const change = (usage: Partial<FleetUsage>): void => {
    answer = (url) =>
      url.pathname.endsWith('fleet/usage')
        ? Response.json({ ...(makeFleetResponse(fleet, url) as FleetUsage), ...usage })
        : null;
  };

  it('partial usage is shown as lower bound', async () => {
    change({
      state: 'partial',
      problems: ['2 nodes have restarted'],
      energy_joules: 49.8e3 * 3.6e6,
    });
    await mount('view=users');
    expect(readText('[data-tile=energy] .gpumon-tile-number')).toBe('≥ 49.8MWh in 1 d');
    expect(find('[data-tile=energy]').title).toBe('2 nodes have restarted.');
    for (const row of rows('gpumon-fleet-users')) {
      expect(row.children[1]?.textContent.replaceAll('\u00a0', ' ')).toMatch(/^(≥ [\d.]+|–)$/);
    }
  });

  it('usage has total and unlisted jobs', async () => {
    const unlisted = {
      name: null,
      owners: 1234,
      gpu_s: 3600,
      active_gpu_s: 3600,
      energy_joules: 3.6e6,
    };
    change({ unlisted, owners_total: 2000 });
    await mount('view=jobs');
    const sums = (): string[] =>
      [...find('[data-testid=gpumon-fleet-jobs] tfoot').querySelectorAll<HTMLElement>('tr')]
        .filter(({ hidden }) => !hidden)
        .map((row) => row.children[0]?.textContent ?? '');
    expect(sums()).toEqual(['1,234 more', 'Total']);
    expect(readText('.gpumon-fleet-owners .gpumon-fleet-note')).toContain(
      '1,234 more are included only in the totals.',
    );
    await typeText('user:ana');
    expect(sums()).toEqual(['Total']);
  });

  it('unknown users are listed', async () => {
    fleet = { ...fleet, owners: [], holds: [] };
    change({
      users: [{ name: null, owners: 3, gpu_s: 7200, active_gpu_s: 3600, energy_joules: null }],
      owners: [],
    });
    await mount('view=users');
    expect(isDisplayed('[data-testid=gpumon-fleet-users]')).toBe(true);
    expect(readText('[data-testid=gpumon-fleet-users] tfoot tr')).toMatch(/^Unknown user2\.00/);
    expect(isDisplayed('.gpumon-fleet-owners .gpumon-fleet-empty')).toBe(false);
    await typeText('user:ana');
    expect(isDisplayed('[data-testid=gpumon-fleet-users]')).toBe(false);
  });
});

it('free GPUs ignore filters of other views', async () => {
  await mount('filter=user:ana');
  find('[data-view=free]').click();
  await advanceTimers();
  expect(readText('[data-testid=gpumon-fleet-free]')).toMatch(/nodes have these GPUs free/);
  expect((find('.gpumon-fleet-filter') as HTMLInputElement).value).toBe('');
  await typeText('user:ana');
  expect(readText('[data-testid=gpumon-fleet-free]')).toMatch(
    /No node that matches the filter has these GPUs free\. Without the filter, \d+ nodes have them/,
  );
});

it('search without free GPUs suggests nearest node', async () => {
  await mount('view=free&gpus=9');
  const model = find('[data-testid=gpumon-fleet-model]') as HTMLSelectElement;
  expect([...model.options].map(({ text: name }) => name)).toEqual([
    'of any model',
    'H200',
    'H100 80GB HBM3',
    'A100-SXM4-40GB',
  ]);
  model.value = 'NVIDIA H200';
  model.dispatchEvent(new Event('change', { bubbles: true }));
  await advanceTimers();
  expect(addresses.at(-1)).toBe('view=free&gpus=9&model=NVIDIA+H200');
  expect(readText('[data-testid=gpumon-fleet-nearest]')).toMatch(
    /^Nearest: \d of 8 free on node-\d{4}/,
  );
  expect(findCells('gpumon-fleet-free-nodes', 'Model').map(({ title }) => title)).toEqual([
    'NVIDIA H200',
  ]);
});

it('header counts critical GPUs', async () => {
  fleet = generateFleet({ nodes: 200, gpus: 8, at_ms: NOW });
  await mount('view=gpus');
  const chip = find('[data-testid=gpumon-fleet-critical]');
  const [many = ''] = /\d+/.exec(chip.textContent) ?? [];
  chip.click();
  await advanceTimers();
  expect(addresses.at(-1)).toBe('view=gpus&filter=critical');
  expect(readText('[data-testid=gpumon-fleet-count]')).toBe(`${many} of 1,600`);
  const pressed = [...host.querySelectorAll('[aria-pressed=true]')].map(
    ({ textContent }) => textContent,
  );
  expect(pressed).toContain(`${many} critical`);
  expect(pressed).toContain(`Critical: All critical${many}`);
  for (const cell of findCells('gpumon-fleet-gpus', 'State')) {
    expect(cell.dataset.level).toBe('critical');
  }
});

it('legend names states', async () => {
  await mount('metric=state');
  expect([...find('.gpumon-fleet-legend').children].map(({ textContent }) => textContent)).toEqual(
    expect.arrayContaining(['Free', 'Idle, but held', 'In use', 'Not responding']) as string[],
  );
  expect(readText('[aria-label=Metric] [aria-pressed=true]')).toBe('State');
});

it('tables have sums of matching rows', async () => {
  await mount('view=gpus&filter=node-0007');
  const sums = [...find('[data-testid=gpumon-fleet-gpus] tfoot tr').children].map(
    ({ textContent }) => textContent,
  );
  expect(sums[0]).toBe('Total: 8');
  expect(sums[5]?.replace('\u00a0', ' ')).toMatch(/^[\d,.]+ GiB$/);
  mounted.show('view=nodes');
  await advanceTimers();
  expect(readText('[data-testid=gpumon-fleet-nodes] tfoot td')).toBe('Total: 40');
});

it('number at end of node name is isolated', async () => {
  await mount('view=gpus&filter=node-0007');
  const [name] = findCells('gpumon-fleet-gpus', 'GPU');
  expect([...(name?.querySelectorAll('bdi') ?? [])].map(({ textContent }) => textContent)).toEqual([
    'node-',
    expect.stringMatching(/^0007 \/ \d$/),
  ]);
});

it('empty event list mentions the filter', async () => {
  await mount('view=events&filter=nobody');
  expect(readText('.gpumon-fleet-events .gpumon-fleet-empty')).toBe('Nothing matches this filter.');
});

it('unusable node name gives null instead of path', () => {
  expect(nodePath('a b/../ü?#')).toBe('nodes/a%20b%2F..%2F%C3%BC%3F%23/');
  expect(nodePath('..')).toBeNull();
  expect(nodePath('.')).toBeNull();
  expect(nodePath('')).toBeNull();
  expect(nodePath('\ud800')).toBeNull();
});

it('markup in names is shown as text', async () => {
  const evil = '<img src=x onerror="alert(1)">';
  fleet = generateFleet({ nodes: 3, gpus: 2, at_ms: NOW, nameOf: (node) => `${evil}${node}` });
  fleet.gpus.models = [evil, evil, evil];
  fleet.owners.forEach((owner) => Object.assign(owner, { user: evil, id: evil, namespace: evil }));
  fleet.conditions.push({ gpu: 0, kind: evil, severity: 3 });
  fleet.problems = [evil];
  fleet.state = 'partial';
  fleet.source.name = evil;
  fleet.missing = { processes: evil, owners: evil, conditions: evil };
  // One view shows all of these pages in turn, because mounting a view reads its colors, which
  // takes most of the time in jsdom.
  await mount();
  for (const view of [
    'map',
    'nodes',
    'gpus',
    'users',
    'jobs',
    'notebooks',
    'namespaces',
    'free',
    'events',
  ]) {
    mounted.show(`view=${view}&node=${encodeURIComponent(`${evil}0`)}&gpus=1`);
    await advanceTimers();
    expect(find(`[data-testid=gpumon-fleet]`).dataset.view, view).toBe(view);
    expect(host.querySelector('img')).toBeNull();
    expect(host.textContent).toContain(evil);
  }
});

describe('fleet status', () => {
  it('loading fleet reserves its space', async () => {
    answer = () => null;
    mounted = mountFleet(host, {
      title: 'Fleet',
      address: '',
      request: () => new Promise(() => undefined),
      opener: { hrefOf: () => '', open: () => undefined },
      onAddress: () => undefined,
    });
    await advanceTimers();
    expect(find('[data-testid=gpumon-fleet]').dataset.state).toBe('loading');
    expect(isDisplayed('.gpumon-fleet-skeleton')).toBe(true);
    expect(find('[data-tile=gpus]').hasAttribute('data-pending')).toBe(true);
  });

  it('partial fleet lists each problem', async () => {
    fleet = {
      ...fleet,
      state: 'partial',
      problems: ['Two of three queries failed. Look at the log.'],
    };
    await mount();
    expect(find('[data-testid=gpumon-fleet]').dataset.state).toBe('partial');
    expect(readText('[data-testid=gpumon-fleet-notice]')).toContain(
      'Two of three queries failed. Look at the log.',
    );
    expect(readText('[data-tile=gpus] .gpumon-tile-value')).toBe('320');
  });

  it('outdated fleet keeps values and age', async () => {
    fleet = {
      ...fleet,
      state: 'outdated',
      at_ms: NOW - 400_000,
      problems: ['No answer. Start Prometheus.'],
    };
    await mount();
    expect(find('[data-testid=gpumon-fleet]').dataset.state).toBe('outdated');
    expect(readText('[data-testid=gpumon-fleet-notice] h2')).toMatch(
      /^Last known values, from .* \(6 min ago\)$/,
    );
    expect(readText('[data-tile=gpus] .gpumon-tile-value')).toBe('320');
  });

  it('stale cached fleet is shown until updated', async () => {
    const old: Fleet = { ...fleet, state: 'outdated', at_ms: NOW - 3_600_000 };
    let read: (response: Response) => void = () => undefined;
    answer = ({ pathname, searchParams }) =>
      searchParams.has('at_once')
        ? Response.json(old)
        : pathname === '/api/v1/fleet'
          ? new Promise((resolve) => (read = resolve))
          : null;
    await mount();
    expect(find('[data-testid=gpumon-fleet]').dataset.state).toBe('updating');
    expect(readText('[data-testid=gpumon-fleet-status]')).toMatch(/^read at .*, updating$/);
    expect(isDisplayed('[data-testid=gpumon-fleet-notice]')).toBe(false);
    expect(readText('[data-tile=gpus] .gpumon-tile-value')).toBe('320');
    // The other requests are sent only after the fleet has arrived, because they would delay it.
    expect(asked).toEqual(['api/v1/fleet?at_once=true', 'api/v1/fleet']);
    read(Response.json(fleet));
    await advanceTimers();
    expect(find('[data-testid=gpumon-fleet]').dataset.state).toBe('live');
    expect(asked.slice(2)).toEqual([
      'api/v1/fleet/history?range_s=86400',
      'api/v1/fleet/usage?range_s=86400',
    ]);
  });

  it('failing server shows outdated data until next response', async () => {
    await mount();
    answer = () => new Response('busy\n', { status: 503 });
    await vi.advanceTimersByTimeAsync(16_000);
    expect(find('[data-testid=gpumon-fleet]').dataset.state).toBe('outdated');
    expect(readText('[data-testid=gpumon-fleet-notice]')).toContain('busy');
    answer = null;
    find('[data-testid=gpumon-fleet-notice] button').click();
    await advanceTimers();
    expect(find('[data-testid=gpumon-fleet]').dataset.state).toBe('live');
  });

  it('reason for unreadable source is shown', async () => {
    const nothing = generateFleet({ nodes: 0, gpus: 0, at_ms: NOW });
    fleet = { ...nothing, state: 'loading', problems: ['Prometheus cannot be reached. Start it.'] };
    await mount();
    expect(find('[data-testid=gpumon-fleet]').dataset.state).toBe('error');
    expect(readText('[data-testid=gpumon-fleet-notice] li')).toBe(
      'Prometheus cannot be reached. Start it.',
    );
  });

  it('server without fleet has its own message', async () => {
    answer = () =>
      new Response('this server shows no fleet: start one with `gpumon fleet`\n', { status: 404 });
    await mount();
    expect(find('[data-testid=gpumon-fleet]').dataset.state).toBe('error');
    expect(readText('[data-testid=gpumon-fleet-notice] li')).toBe(
      'this server shows no fleet: start one with `gpumon fleet`',
    );
    expect(isDisplayed('.gpumon-fleet-body')).toBe(false);
  });
});

it('hidden fleet is not polled', async () => {
  await mount();
  const many = (): number => asked.filter((path) => /^api\/v1\/fleet(\?|$)/.test(path)).length;
  expect(many()).toBe(1);
  await vi.advanceTimersByTimeAsync(14_000);
  expect(many()).toBe(1);
  await vi.advanceTimersByTimeAsync(1500);
  expect(many()).toBe(2);
  mounted.setVisible(false);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(many()).toBe(2);
  mounted.setVisible(true);
  await advanceTimers();
  expect(many()).toBe(3);
});

it('URL starts a search for free GPUs', async () => {
  await mount('view=free&gpus=2&memory=80');
  const inputs = [...host.querySelectorAll<HTMLInputElement>('.gpumon-free-form input')];
  expect(inputs.map(({ value }) => value)).toEqual(['2', '80']);
  expect(readText('[data-testid=gpumon-fleet-free]')).toMatch(/nodes? ha(s|ve) these GPUs free/);
  const [gpus] = inputs;
  if (gpus !== undefined) {
    gpus.value = '9';
    gpus.dispatchEvent(new Event('input', { bubbles: true }));
  }
  await advanceTimers();
  expect(readText('[data-testid=gpumon-fleet-free]')).toBe(
    'No node has that many GPUs; the largest node has 8 GPUs.',
  );
  expect(addresses.at(-1)).toBe('view=free&gpus=9&memory=80');
});

it('fleet without GPU list requests GPUs on demand', async () => {
  fleet = generateFleet({ nodes: 50, gpus: 8, at_ms: NOW, byNode: true });
  await mount('view=gpus&node=node-0007');
  expect(isDisplayed('[data-view=gpus][role=tab]')).toBe(false);
  expect(rows('gpumon-fleet-nodes').length).toBeGreaterThan(30);
  expect(asked).toContain('api/v1/fleet/node?node=node-0007');
  expect(host.querySelectorAll('.gpumon-node-gpus li')).toHaveLength(8);
});

it('every text of the fleet is translated', async () => {
  setTranslator(pseudoTranslator(english));
  fleet = { ...fleet, state: 'partial', unopenable: {} } as Fleet;
  const names = [
    ...fleet.nodes.name,
    ...fleet.gpus.models,
    ...fleet.owners.flatMap(({ user, id, namespace }) => [user ?? '', id, namespace ?? '']),
    ...Object.values(fleet.nodes.reasons),
    ...Object.values(fleet.nodes.unopenable),
    fleet.source.name,
    'Fleet',
    'Xid',
    'GPU-h',
    // The following data are filter words, which are not translated.
    'memory>80GiB',
    'power<100W',
    ...['node', 'gpu', 'user', 'job', 'notebook', 'namespace', 'condition'].map(
      (place) => `${place}:`,
    ),
    ...fleet.gpus.models.map((model) => model.replace('NVIDIA ', '')),
  ]
    // A displayed name and the number at its end are separate elements, so both forms of the name
    // are needed.
    .flatMap((name) => [name, name.replace(/\d[\d.:_-]*$/, '')])
    .filter((name) => name !== '');
  for (const view of [
    'map',
    'nodes',
    'gpus',
    'users',
    'jobs',
    'notebooks',
    'namespaces',
    'free',
    'events',
  ]) {
    await mount(`view=${view}&node=node-0001&gpu=0`);
    expect(findUntranslated(textsOf(host), names)).toEqual([]);
    mounted.dispose();
  }
  await mount();
});
