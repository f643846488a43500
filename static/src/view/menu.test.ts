// @vitest-environment jsdom
import { expect, it } from 'vitest';

import { h } from '../lib/dom';
import { menu } from './menu';

it('is closed by Escape, which gives the focus back, and by a click elsewhere', async () => {
  const inside = h('button', {}, 'inside');
  const element = menu('Charts', inside);
  document.body.append(element);
  const toggled = (): Promise<unknown> =>
    new Promise((resolve) => element.addEventListener('toggle', resolve));
  const open = async (): Promise<void> => {
    const next = toggled();
    element.open = true;
    await next;
  };
  await open();
  inside.focus();
  inside.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
  expect(element.open).toBe(false);
  expect(document.activeElement?.textContent).toBe('Charts');
  await open();
  inside.dispatchEvent(new Event('pointerdown', { bubbles: true }));
  expect(element.open).toBe(true);
  document.body.dispatchEvent(new Event('pointerdown', { bubbles: true }));
  expect(element.open).toBe(false);
});

it.each([
  ['left edge', { left: 20, right: 80 }, '-8px'],
  ['middle', { left: 500, right: 580 }, '-180px'],
  ['right edge', { left: 960, right: 995 }, '-232px'],
  ['left edge of a narrow view', { left: 0, right: 60 }, '12px'],
])('shows its whole content at the %s', async (_, { left, right }, offset) => {
  const content = h('div', {}, 'content');
  const element = menu('Charts', content);
  const view = h('div', { class: 'gpumon' }, element);
  document.body.replaceChildren(view);
  const rect = (left: number, right: number): DOMRect => new DOMRect(left, 0, right - left, 20);
  view.getBoundingClientRect = () => rect(0, 1000);
  element.getBoundingClientRect = () => rect(left, right);
  Object.defineProperty(content, 'offsetWidth', { value: 260 });
  const toggled = new Promise((resolve) => element.addEventListener('toggle', resolve));
  element.open = true;
  await toggled;
  expect(content.style.getPropertyValue('--_left')).toBe(offset);
});
