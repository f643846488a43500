// @vitest-environment jsdom
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { fromAddress, toAddress } from '../../model/dashboard/state';
import type { Request } from '../../model/request';
import { Store } from '../../model/store';
import { gpu, hello, inventory, NOW, sample } from '../../testing/frames';
import { Dashboard } from './dashboard';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
  vi.setSystemTime(NOW);
});

/** The dashboard of so many GPUs, of which each draws 10 W more than the one before. */
function shown(
  count: number,
  address = '',
  request?: Request,
): { element: HTMLElement; render: () => void; address: () => string } {
  const gpus = Array.from({ length: count }, (_, index) =>
    gpu(index, { power: { ...gpu(index).power, draw_watts: 10 * index } }),
  );
  const store = new Store(() => NOW);
  store.phase = { phase: 'open' };
  store.apply(hello({ inventory: inventory(count), sample: sample(NOW, gpus) }));
  let state = fromAddress(address);
  const dashboard: Dashboard = new Dashboard(
    store,
    { update: vi.fn() },
    {
      title: '',
      state,
      onState: (next) => {
        state = next;
      },
      request,
      onRetry: vi.fn(),
      invalidate: () => dashboard.render(),
    },
  );
  document.body.replaceChildren(dashboard.element);
  dashboard.render();
  return { element: dashboard.element, render: () => dashboard.render(), address: () => toAddress(state) };
}

function legend(element: HTMLElement, plot = 'all power.draw_watts'): HTMLButtonElement[] {
  return [...element.querySelectorAll<HTMLButtonElement>(`[data-plot="${plot}"] .gpumon-readouts > button`)];
}

const texts = (entries: HTMLElement[]): string[] => entries.map((one) => one.textContent.replaceAll('\u00a0', ' '));
const pressed = (entries: HTMLElement[]): (string | null)[] => entries.map((one) => one.getAttribute('aria-pressed'));

describe('the legends of a dashboard', () => {
  it('isolate a GPU in all charts by a click, and hide one by a click or a key with Ctrl or Shift', () => {
    const { element, address } = shown(3);
    const click = (at: number, keys: MouseEventInit = {}): void => {
      legend(element)[at]?.dispatchEvent(new MouseEvent('click', { bubbles: true, ...keys }));
    };
    expect(texts(legend(element))).toEqual(['00 W', '110 W', '220 W']);
    click(1);
    expect(pressed(legend(element))).toEqual(['false', 'true', 'false']);
    expect(pressed(legend(element, 'all temperature.gpu_celsius'))).toEqual(['false', 'true', 'false']);
    expect(pressed(legend(element, 'host cpu'))).toEqual(['true']);
    expect(address()).toBe('hide=0,2');
    click(1);
    expect(address()).toBe('');
    click(2, { shiftKey: true });
    expect(address()).toBe('hide=2');
    legend(element)[2]?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true }));
    expect(address()).toBe('');
  });

  it('name the extremes of many GPUs, or those that were chosen, and the rest on request', () => {
    const { element, render } = shown(64);
    expect(texts(legend(element))).toEqual(['max63630 W', 'min00 W']);
    expect(element.querySelectorAll('*').length).toBeLessThan(900);
    const more = element.querySelector('[data-plot="all power.draw_watts"] .gpumon-legend details');
    expect(more?.firstElementChild?.textContent).toBe('62 more');
    more?.setAttribute('open', '');
    render();
    const all = legend(element);
    expect(all).toHaveLength(66);
    all.find((one) => texts([one])[0] === '770 W')?.click();
    expect(texts(legend(element).slice(0, 1))).toEqual(['770 W']);
  });
});

describe('the charts of a dashboard', () => {
  const plots = (element: HTMLElement): (string | null)[] =>
    [...element.querySelectorAll('[data-plot]')].map((plot) => plot.getAttribute('data-plot'));
  const menuItem = (element: HTMLElement, plot: string, name: string): void => {
    const menu = element.querySelector<HTMLDetailsElement>(`[data-plot="${plot}"] .gpumon-plot-head details`);
    menu?.setAttribute('open', '');
    menu?.dispatchEvent(new Event('toggle'));
    [...(menu?.querySelectorAll('button') ?? [])].find(({ textContent }) => textContent === name)?.click();
  };

  it('are moved and taken away by their menu, and any reading is added by the list', () => {
    const { element, render, address } = shown(2, 'charts=power.draw_watts,fan_percent,memory.used_bytes,cpu');
    expect(plots(element)).toEqual(['all power.draw_watts', 'all memory.used_bytes', 'host cpu']);
    menuItem(element, 'all power.draw_watts', 'Move right');
    menuItem(element, 'all power.draw_watts', 'Move right');
    expect(address()).toBe('charts=fan_percent,memory.used_bytes,power.draw_watts,cpu');
    menuItem(element, 'all memory.used_bytes', 'Remove chart');
    const list = element.querySelector<HTMLSelectElement>('select');
    expect(list?.querySelectorAll('option').length).toBeGreaterThan(60);
    if (list !== null) {
      list.value = 'memory.free_bytes';
      list.dispatchEvent(new Event('change'));
    }
    expect(plots(element)).toEqual(['all power.draw_watts', 'all memory.free_bytes', 'host cpu']);
    expect(texts(legend(element, 'all memory.free_bytes'))).toEqual(['061.0 GiB', '161.0 GiB']);
    expect(address()).toBe('charts=fan_percent,power.draw_watts,cpu,memory.free_bytes');
    list?.closest('details')?.setAttribute('open', '');
    render();
    [...element.querySelectorAll('button')].find(({ textContent }) => textContent === 'Default charts')?.click();
    expect(address()).toBe('');
  });
});

describe('a mark', () => {
  const press = (element: HTMLElement, key: string): void => {
    element.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  };

  it('is asked for by a key at the moment shown, and what the server has against it is said', async () => {
    const request = vi.fn<Request>();
    const { element } = shown(1, '', request);
    const menu = element.querySelector('.gpumon-mark-form')?.closest('details');
    const input = element.querySelector<HTMLInputElement>('.gpumon-mark-form input');
    const form = element.querySelector('form');
    expect(menu?.open).toBe(false);
    press(element, 'm');
    expect(menu?.open).toBe(true);
    await vi.waitFor(() => expect(document.activeElement).toBe(input));
    if (input != null) {
      input.value = 'epoch 3';
    }

    request.mockResolvedValueOnce(new Response('only the user who started this server\n', { status: 403 }));
    form?.requestSubmit();
    await vi.waitFor(() =>
      expect(form?.querySelector('[role=alert]')?.textContent).toBe('only the user who started this server'),
    );
    expect(menu?.open).toBe(true);

    request.mockResolvedValueOnce(new Response('{}', { status: 201 }));
    form?.requestSubmit();
    await vi.waitFor(() => expect(menu?.open).toBe(false));
    expect(document.activeElement).toBe(element);
    const [path, init] = request.mock.lastCall ?? [];
    expect([path, init?.method, init?.headers]).toEqual(['api/v1/marks', 'POST', { 'X-Gpumon': 'run' }]);
    expect(JSON.parse(init?.body as string)).toEqual({ text: 'epoch 3', at_ms: NOW });
  });

  it('cannot be set where nothing can be asked', () => {
    const { element } = shown(1);
    press(element, 'm');
    expect(element.querySelector('.gpumon-mark-form')).toBeNull();
  });
});
