/** Measurements on a page that find controls which are cut off or overlapped. */

import type { Frame, Page } from 'playwright-core';

/** A text that names a control and describes its fault. */
type Fault = string;

/** The path of the page that only contains the measured page. */
const AROUND = '/measured-page';

/**
 * Opens a page in an invisible frame, and returns the frame. The browser computes the layout of an
 * invisible frame but does not draw it. Drawing would take most of the time at each width.
 */
export async function openForMeasuring(page: Page, url: string, height_px: number): Promise<Frame> {
  const around = new URL(AROUND, url).href;
  const body = `<iframe height="${height_px}" style="visibility: hidden"></iframe>`;
  await page.route(around, (route) => route.fulfill({ contentType: 'text/html', body }));
  await page.goto(around);
  const [frame] = page.mainFrame().childFrames();
  if (frame === undefined) {
    throw new Error('the page has no frame');
  }
  await frame.goto(url);
  return frame;
}

/**
 * Returns the faults of the controls in the frame at these widths. A fault that occurs at adjacent
 * widths is listed once, for example `250-310 px: button.gpumon-chip "Charts" passes the edge of
 * .gpumon-head`.
 */
export async function findControlFaults(
  frame: Frame,
  widths: readonly number[],
): Promise<string[]> {
  const spans = new Map<Fault, number[][]>();
  let before = 0;
  for (const width of widths) {
    for (const fault of new Set(await frame.evaluate(findFaultsAtWidth, width))) {
      const all = spans.get(fault) ?? [];
      const last = all.at(-1);
      if (last?.at(-1) === before) {
        last.push(width);
      } else {
        all.push([width]);
      }
      spans.set(fault, all);
    }
    before = width;
  }
  return [...spans].flatMap(([fault, all]) =>
    all.map((span) => `${span[0]}${span.length > 1 ? `-${span.at(-1)}` : ''} px: ${fault}`),
  );
}

/** Returns the faults at this width. The function runs in the frame. */
async function findFaultsAtWidth(width: number): Promise<Fault[]> {
  const CONTROLS =
    '.gpumon :is(button, input, select, textarea, summary, a[href], [role=tab], [role=button])';
  /** Controls must stay within the edges of these elements. */
  const CONTAINERS =
    '.gpumon-head, .gpumon-controls, .gpumon-gpu, .gpumon-plot, .gpumon-section, .gpumon';
  const TOLERANCE_PX = 1;

  window.frameElement?.setAttribute('width', String(width));
  // A view is rendered one frame after its width has been measured, so the measurement waits for
  // some frames.
  for (let frame = 0; frame < 3; frame += 1) {
    await new Promise(requestAnimationFrame);
  }

  interface Box {
    left: number;
    right: number;
    top: number;
    bottom: number;
  }
  const boxOf = (element: Element): Box => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return { left, right, top, bottom };
  };
  const nameOf = (element: Element): string => {
    const id = element.getAttribute('data-testid');
    const [first = ''] = element.classList;
    const selector = id !== null ? `[data-testid=${id}]` : first === '' ? '' : `.${first}`;
    const text = (element.getAttribute('aria-label') ?? element.textContent).trim();
    // Digits are replaced, because values change with every sample.
    return `${element.localName}${selector} "${text.replaceAll(/\d[\d.,:]*/g, '#').slice(0, 40)}"`;
  };

  interface Control {
    element: Element;
    /** The part of the control's box that parents do not clip. */
    seen: Box;
  }
  const faults: Fault[] = [];
  const controls: Control[] = [];
  for (const element of document.querySelectorAll(CONTROLS)) {
    const isVisible = element.checkVisibility({
      opacityProperty: true,
      visibilityProperty: true,
      contentVisibilityAuto: true,
    });
    const box = boxOf(element);
    if (!isVisible || box.right - box.left < 1 || box.bottom - box.top < 1) {
      continue;
    }
    // A control this small is only for screen readers and is not checked.
    if (box.right - box.left <= 2 && box.bottom - box.top <= 2) {
      continue;
    }
    const seen = { ...box };
    let isScrolled = false;
    for (let around = element.parentElement; around !== null; around = around.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(around);
      if (overflowX === 'visible' && overflowY === 'visible') {
        continue;
      }
      const edge = boxOf(around);
      // A scrollable element may cut off a control, because the user can scroll to the control. A
      // whole view is different: it must not scroll horizontally.
      const isScrolledHere =
        /auto|scroll/.test(overflowX) &&
        around.scrollWidth > around.clientWidth &&
        !around.matches('.gpumon, main, body, html');
      isScrolled ||= isScrolledHere;
      const isCut = box.left < edge.left - TOLERANCE_PX || box.right > edge.right + TOLERANCE_PX;
      if (isCut && !isScrolled) {
        faults.push(`${nameOf(element)} is cut off by ${nameOf(around).replace(/ ".*/s, '')}`);
      }
      seen.left = Math.max(seen.left, edge.left);
      seen.right = Math.min(seen.right, edge.right);
      seen.top = Math.max(seen.top, edge.top);
      seen.bottom = Math.min(seen.bottom, edge.bottom);
    }
    const container = element.closest(CONTAINERS);
    const edge = container === null ? null : boxOf(container);
    const leaves =
      edge !== null &&
      (box.left < edge.left - TOLERANCE_PX || box.right > edge.right + TOLERANCE_PX);
    if (leaves && !isScrolled) {
      faults.push(`${nameOf(element)} leaves ${nameOf(container ?? element).replace(/ ".*/s, '')}`);
    }
    if (!isScrolled && (box.left < -TOLERANCE_PX || box.right > width + TOLERANCE_PX)) {
      faults.push(`${nameOf(element)} leaves the window`);
    }
    const { textOverflow, display } = getComputedStyle(element);
    const isText = display !== 'inline' && !/^(input|select|textarea)$/.test(element.localName);
    if (
      isText &&
      textOverflow !== 'ellipsis' &&
      element.scrollWidth > element.clientWidth + TOLERANCE_PX &&
      element.querySelector(':scope > :is(div, ul)') === null
    ) {
      faults.push(`${nameOf(element)} has more text than room`);
    }
    if (seen.right > seen.left && seen.bottom > seen.top) {
      controls.push({ element, seen });
    }
  }

  controls.sort((a, b) => a.seen.top - b.seen.top);
  controls.forEach((upper, place) => {
    for (const lower of controls.slice(place + 1)) {
      if (lower.seen.top >= upper.seen.bottom - TOLERANCE_PX) {
        break;
      }
      const overlap = Math.min(
        Math.min(upper.seen.right, lower.seen.right) - Math.max(upper.seen.left, lower.seen.left),
        Math.min(upper.seen.bottom, lower.seen.bottom) - Math.max(upper.seen.top, lower.seen.top),
      );
      const areNested =
        upper.element.contains(lower.element) || lower.element.contains(upper.element);
      if (overlap > TOLERANCE_PX && !areNested) {
        faults.push(`${nameOf(upper.element)} overlaps ${nameOf(lower.element)}`);
      }
    }
  });
  return faults;
}
