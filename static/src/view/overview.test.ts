// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Store } from '../model/store';
import { gpu, hello, inventory, NOW, process, sample } from '../testing/frames';
import type { GpuSample } from '../wire';
import { Overview } from './overview';

let store: Store;
let overview: Overview;

beforeEach(() => {
  vi.useFakeTimers();
  vi.setSystemTime(NOW);
  store = new Store();
  store.phase = { phase: 'open' };
  overview = new Overview(store, {
    title: 'GPUs',
    connectingMessage: 'Wait.',
    actions: [],
    invalidate: () => {
      overview.render();
    },
    onRetry: () => undefined,
  });
  document.body.append(overview.element);
});

afterEach(() => {
  overview.dispose();
  vi.useRealTimers();
});

function show(...gpus: GpuSample[]): void {
  store.apply(hello({ inventory: inventory(gpus.length), sample: sample(NOW, gpus) }));
  overview.render();
}

function find(selector: string): HTMLElement {
  const found = overview.element.querySelector<HTMLElement>(selector);
  if (found === null) {
    throw new Error(`nothing matches ${selector}`);
  }
  return found;
}

function text(selector: string): string {
  return find(selector).textContent.replaceAll('\u00a0', ' ');
}

describe('a reading', () => {
  it('shows its value', () => {
    show(gpu(0));
    expect(text('[data-reading="utilization.gpu_percent"]')).toBe('96 %');
    expect(text('[data-metric="memory"] .gpumon-value')).toBe('78.0 / 140 GiB');
    expect(text('[data-metric="power"] .gpumon-value')).toBe('692 / 700 W');
    expect(text('[data-metric="temperature"] .gpumon-value')).toBe('64 °C');
  });

  it('that is absent is a dash with its reason, for the eye and the ear, and never 0', () => {
    const power = {
      ...gpu(0).power,
      draw_watts: { absent: 'no_permission' },
      limit_watts: { absent: 'not_supported' },
    } as const;
    show(gpu(0, { power }));
    const value = find('[data-metric="power"] .gpumon-value');
    expect(text('[data-reading="power.draw_watts"]')).toBe('–');
    expect(value.title).toContain('needs permission');
    expect(value.textContent).toContain('needs permission');
    expect(value.textContent).not.toContain('0');
  });

  it('that is old says when it was read', () => {
    show(gpu(0, { temperature: { gpu_celsius: { value: 64, at_ms: NOW - 120_000 }, memory_celsius: 70 } }));
    const value = find('[data-metric="temperature"] .gpumon-value');
    expect(value.hasAttribute('data-stale')).toBe(true);
    expect(value.title.replaceAll('\u00a0', ' ')).toBe('read 2 min ago');
  });
});

describe('a GPU', () => {
  it('that is lost keeps its place, and says since when and what to do', () => {
    show(gpu(0), gpu(1), gpu(2));
    const cards = [...overview.element.querySelectorAll('[data-gpu-index]')];
    show(gpu(0), gpu(1, { health: { state: 'lost', since_ms: NOW } }), gpu(2));
    expect([...overview.element.querySelectorAll('[data-gpu-index]')]).toEqual(cards);
    const lost = find('[data-gpu-index="1"]');
    expect(lost.dataset.gpuHealth).toBe('lost');
    expect(lost.querySelector('.gpumon-alert')?.textContent).toMatch(/lost since \d\d:\d\d:\d\d.*reboot/);
    expect(find('[role="status"]').textContent).toContain('GPU 1: lost');
  });

  it('opens and closes', () => {
    show(gpu(0));
    const toggle = find('.gpumon-toggle');
    const details = find('.gpumon-details');
    expect([toggle.getAttribute('aria-expanded'), details.hidden]).toEqual(['false', true]);
    toggle.click();
    expect([toggle.getAttribute('aria-expanded'), details.hidden]).toEqual(['true', false]);
    expect(text('[data-reading="clocks.sm_mhz"]')).toBe('1,980 MHz');
  });

  it('says in words what holds it down', () => {
    show(gpu(0, { throttle_reasons: ['gpu_idle', 'sw_power_cap'] }));
    expect(text('[data-testid="gpumon-throttle"]')).toBe('power capped');
  });

  it('shows the past that somebody points at', () => {
    show(gpu(0));
    vi.setSystemTime(NOW + 1000);
    store.apply({
      type: 'sample',
      ...sample(NOW + 1000, [gpu(0, { utilization: { ...gpu(0).utilization, gpu_percent: 5 } })]),
    });
    overview.render();
    const card = find('[data-gpu-index="0"]');
    expect(text('[data-reading="utilization.gpu_percent"]')).toBe('5 %');
    card.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft' }));
    expect(text('[data-reading="utilization.gpu_percent"]')).toBe('96 %');
    card.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
    expect(text('[data-reading="utilization.gpu_percent"]')).toBe('5 %');
  });
});

describe('processes', () => {
  it('with hostile names are text, and cannot reorder or hide what stands beside them', () => {
    const name = '<img src=x onerror=alert(1)>\u202etxt.exe\u0007';
    show(gpu(0, { processes: [process(7, { name, command: `${name} --evil`, user: '<b>root</b>' })] }));
    const row = find('[data-pid="7"]');
    expect(row.querySelector('img, b, script')).toBeNull();
    const shown = row.querySelector('[data-testid="gpumon-process-name"]');
    expect(shown?.textContent).toBe('<img src=x onerror=alert(1)>\ufffdtxt.exe\ufffd');
    expect(overview.element.textContent).not.toContain('\u202e');
  });

  it('whose memory the driver cannot tell have a dash', () => {
    show(gpu(0, { processes: [process(7, { memory_bytes: { absent: 'unknown' } })] }));
    expect(text('[data-pid="7"] [data-reading="process.memory_bytes"]')).toBe('–');
  });

  it('keep their rows while they run', () => {
    show(gpu(0, { processes: [process(7), process(8, { memory_bytes: 5 })] }));
    const row = find('[data-pid="8"]');
    show(gpu(0, { processes: [process(8, { memory_bytes: 5 })] }));
    expect(overview.element.querySelector('[data-pid="7"]')).toBeNull();
    expect(find('[data-pid="8"]')).toBe(row);
  });
});

describe('the view', () => {
  it('says where its values are simulated', () => {
    show(gpu(0));
    expect(find('[data-testid="gpumon-simulated"]').hidden).toBe(true);
    const simulated = inventory(1);
    simulated.platform.source = 'simulated';
    store.apply({ type: 'inventory', ...simulated });
    overview.render();
    expect(find('[data-testid="gpumon-simulated"]').hidden).toBe(false);
  });

  it('says what it waits for', () => {
    overview.render();
    expect(overview.element.dataset.gpumonState).toBe('connecting');
    expect(text('[data-testid="gpumon-notice"]')).toContain('Wait.');
    show(gpu(0));
    expect(overview.element.dataset.gpumonState).toBe('live');
    expect(find('[data-testid="gpumon-notice"]').hidden).toBe(true);
  });

  it("gives the collector's reason", () => {
    show(gpu(0));
    store.apply({ type: 'collector', state: 'restarting', since_ms: NOW, message: 'it was killed by signal 9' });
    overview.render();
    expect(overview.element.dataset.gpumonState).toBe('collector-restarting');
    expect(text('[data-testid="gpumon-notice"]')).toContain('It was killed by signal 9');
  });
});
