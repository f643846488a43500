// @vitest-environment jsdom
import { render } from 'preact';
import { afterEach, describe, expect, it, vi } from 'vitest';

import { formatDateAndTime } from '../lib/format';
import type { Request } from '../model/request';
import { ReplayBar } from './replay-bar';

const PLAYBACK = {
  from_ms: 1_700_000_000_000,
  to_ms: 1_700_000_060_000,
  speed: 10,
  paused: false,
  ended: false,
};

const hosts: HTMLElement[] = [];

afterEach(() => hosts.splice(0).forEach((host) => render(null, host)));

function showBar(playback: Partial<typeof PLAYBACK> = {}, response = new Response('{}')) {
  const request = vi.fn<Request>(() => Promise.resolve(response));
  const host = document.createElement('div');
  hosts.push(host);
  const update = (at_ms: number): void =>
    render(
      <ReplayBar request={request} playback={{ ...PLAYBACK, ...playback }} at_ms={at_ms} />,
      host,
    );
  update(PLAYBACK.from_ms + 30_000);
  return {
    update,
    request,
    button: findPart(host, 'button', HTMLButtonElement),
    speed: findPart(host, 'select', HTMLSelectElement),
    slider: findPart(host, 'input', HTMLInputElement),
    refusal: findPart(host, '[role="alert"]', HTMLElement),
  };
}

function findPart<E extends Element>(host: HTMLElement, selector: string, type: new () => E): E {
  const found = host.querySelector(selector);
  if (found instanceof type) {
    return found;
  }
  throw new Error(`there is no ${selector}`);
}

function sentBody(request: ReturnType<typeof showBar>['request']): unknown {
  const body = request.mock.lastCall?.[1]?.body;
  return typeof body === 'string' ? JSON.parse(body) : undefined;
}

describe('recording controls', () => {
  it('replay controls show speed, time and next action', () => {
    expect(showBar().button.textContent).toBe('Pause');
    expect(showBar({ paused: true }).button.textContent).toBe('Resume');
    expect(showBar({ ended: true }).button.textContent).toBe('Restart');
    expect(showBar().speed.value).toBe('10');
    expect(showBar({ speed: 7 }).speed.value).toBe('7');
    const { slider } = showBar();
    expect([slider.min, slider.max].map(Number)).toEqual([PLAYBACK.from_ms, PLAYBACK.to_ms]);
    expect(Number(slider.value)).toBe(PLAYBACK.from_ms + 30_000);
    expect(slider.getAttribute('aria-valuetext')).toBe(
      formatDateAndTime(PLAYBACK.from_ms + 30_000),
    );
  });

  it('replay change is sent, and refusal is explained', async () => {
    const { request, button, speed, slider } = showBar({ ended: true });
    button.click();
    expect(sentBody(request)).toEqual({ paused: false });
    expect(request.mock.lastCall?.[0]).toBe('api/v1/replay');
    expect(request.mock.lastCall?.[1]?.headers).toEqual({ 'X-Gpumon': 'run' });
    speed.value = '60';
    speed.dispatchEvent(new Event('change'));
    expect(sentBody(request)).toEqual({ speed: 60 });
    slider.value = String(PLAYBACK.from_ms + 5000);
    slider.dispatchEvent(new Event('change'));
    expect(sentBody(request)).toEqual({ at_ms: PLAYBACK.from_ms + 5000 });
    const refused = showBar(
      {},
      new Response('only the user who started this server\n', { status: 403 }),
    );
    refused.button.click();
    await vi.waitFor(() => expect(refused.refusal.textContent).toContain('only the user'));
  });

  it('dragged slider keeps its position', () => {
    const { update, slider } = showBar();
    slider.value = String(PLAYBACK.from_ms + 1000);
    slider.dispatchEvent(new Event('input'));
    update(PLAYBACK.from_ms + 31_000);
    expect(Number(slider.value)).toBe(PLAYBACK.from_ms + 1000);
  });
});
