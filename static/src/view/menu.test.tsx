// @vitest-environment jsdom
import { render, type ComponentChild } from 'preact';
import { useState } from 'preact/hooks';
import { afterEach, expect, it } from 'vitest';

import { createElement } from '../lib/dom';
import { Menu } from './menu';

const host = createElement('div', { class: 'gpumon' });

afterEach(() => {
  render(null, host);
  host.remove();
});

function ChartsMenu(): ComponentChild {
  const [isOpen, setOpen] = useState(false);
  return (
    <Menu label="Charts" isOpen={isOpen} onOpen={setOpen}>
      <div>
        <button>inside</button>
      </div>
    </Menu>
  );
}

function showMenu(): { menu: HTMLDetailsElement; inside: HTMLElement } {
  document.body.append(host);
  render(<ChartsMenu />, host);
  const menu = host.querySelector('details');
  const inside = host.querySelector<HTMLElement>('div button');
  if (menu === null || inside === null) {
    throw new Error('the menu is missing');
  }
  return { menu, inside };
}

/** Opens or closes the menu like a click on its button. */
async function toggle(menu: HTMLDetailsElement, open: boolean): Promise<void> {
  menu.open = open;
  menu.dispatchEvent(new Event('toggle'));
  // Effects run after the next frame.
  await new Promise((resolve) => {
    setTimeout(resolve, 60);
  });
}

it('Escape closes the menu and returns the focus', async () => {
  const { menu, inside } = showMenu();
  await toggle(menu, true);
  inside.focus();
  inside.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
  await Promise.resolve();
  expect(menu.open).toBe(false);
  expect(document.activeElement?.textContent).toBe('Charts');
});

it('press outside the menu closes it', async () => {
  const { menu, inside } = showMenu();
  await toggle(menu, true);
  inside.dispatchEvent(new Event('pointerdown', { bubbles: true }));
  await Promise.resolve();
  expect(menu.open).toBe(true);
  document.body.dispatchEvent(new Event('pointerdown', { bubbles: true }));
  await Promise.resolve();
  expect(menu.open).toBe(false);
});

it.each([
  ['left edge', { left: 20, right: 80 }, '-8px'],
  ['middle', { left: 500, right: 580 }, '-180px'],
  ['right edge', { left: 960, right: 995 }, '-232px'],
  ['left edge of a narrow view', { left: 0, right: 60 }, '12px'],
])('whole menu content is visible at the %s', async (_, { left, right }, offset) => {
  const { menu } = showMenu();
  const content = menu.lastElementChild as HTMLElement;
  const rect = (from: number, to: number): DOMRect => new DOMRect(from, 0, to - from, 20);
  host.getBoundingClientRect = () => rect(0, 1000);
  menu.getBoundingClientRect = () => rect(left, right);
  Object.defineProperty(content, 'offsetWidth', { value: 260 });
  await toggle(menu, true);
  expect(content.style.getPropertyValue('--_left')).toBe(offset);
});
