/** Small helpers over the DOM: nodes are made once, and afterwards only what has changed is written. */

type Attributes = Record<string, string>;
type Child = Node | string;

/** Makes an element. Strings become text nodes, so data can never become markup. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Sets an element's text where it differs; the element holds nothing but text. */
export function setText(element: Element, text: string): void {
  const only = element.firstChild;
  if (only instanceof Text && only === element.lastChild) {
    if (only.data !== text) {
      only.data = text;
    }
  } else {
    element.textContent = text;
  }
}

/** Sets an attribute where it differs; `null` takes it away. */
export function setAttribute(element: Element, name: string, value: string | null): void {
  if (value === null) {
    element.removeAttribute(name);
  } else if (element.getAttribute(name) !== value) {
    element.setAttribute(name, value);
  }
}

/** Shows or hides an element, for the eye and for a screen reader alike. */
export function setShown(element: HTMLElement, shown: boolean): void {
  if (element.hidden === shown) {
    element.hidden = !shown;
  }
}

/** Sets a custom property or a style through the CSSOM, which a strict content security policy allows. */
export function setStyle(element: HTMLElement, name: string, value: string): void {
  if (element.style.getPropertyValue(name) !== value) {
    element.style.setProperty(name, value);
  }
}

/**
 * Makes the children of `parent` one element per item, in their order. Elements are kept by key, so focus, hover and
 * selection survive.
 */
export function keyed<Item, Row extends { element: HTMLElement }>(
  parent: HTMLElement,
  rows: Map<string, Row>,
  items: readonly Item[],
  keyOf: (item: Item) => string,
  create: (item: Item) => Row,
  remove: (row: Row) => void = () => undefined,
): Row[] {
  const wanted = new Set(items.map(keyOf));
  for (const [key, row] of rows) {
    if (!wanted.has(key)) {
      remove(row);
      row.element.remove();
      rows.delete(key);
    }
  }
  let place: Element | null = parent.firstElementChild;
  return items.map((item) => {
    const key = keyOf(item);
    let row = rows.get(key);
    if (row === undefined) {
      row = create(item);
      rows.set(key, row);
    }
    if (row.element === place) {
      place = place.nextElementSibling;
    } else {
      parent.insertBefore(row.element, place);
    }
    return row;
  });
}
