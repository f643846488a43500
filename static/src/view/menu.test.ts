// @vitest-environment jsdom
import { expect, it } from 'vitest';

import { h } from '../lib/dom';
import { menu } from './menu';

it('is closed by Escape, which gives the focus back, and by a click elsewhere', async () => {
  const inside = h('button', {}, 'inside');
  const element = menu('Charts', inside);
  document.body.append(element);
  const toggled = (): Promise<unknown> => new Promise((resolve) => element.addEventListener('toggle', resolve));
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
