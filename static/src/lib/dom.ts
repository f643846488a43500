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

export function button(
  attributes: Attributes,
  onClick: (event: MouseEvent) => void,
  ...children: Child[]
): HTMLButtonElement {
  const element = h('button', { type: 'button', ...attributes }, ...children);
  element.addEventListener('click', onClick);
  return element;
}

/** The children of `parent`, one row per item. Rows are kept by key, so that focus, hover and selection survive. */
export class KeyedRows<Item, Row extends { element: HTMLElement }> {
  private readonly rows = new Map<string, Row>();

  constructor(
    private readonly parent: HTMLElement,
    private readonly keyOf: (item: Item) => string,
    private readonly create: (item: Item) => Row,
    private readonly removed: (row: Row) => void = () => undefined,
  ) {}

  get all(): Row[] {
    return [...this.rows.values()];
  }

  get(key: string): Row | undefined {
    return this.rows.get(key);
  }

  /** Makes the rows those of `items`, in their order, and has each written. */
  update(items: readonly Item[], write: (row: Row, item: Item) => void): void {
    const wanted = new Set(items.map(this.keyOf));
    for (const [key, row] of this.rows) {
      if (!wanted.has(key)) {
        this.removed(row);
        row.element.remove();
        this.rows.delete(key);
      }
    }
    let place: Element | null = this.parent.firstElementChild;
    for (const item of items) {
      const key = this.keyOf(item);
      const row = this.rows.get(key) ?? this.create(item);
      this.rows.set(key, row);
      if (row.element === place) {
        place = place.nextElementSibling;
      } else {
        this.parent.insertBefore(row.element, place);
      }
      write(row, item);
    }
  }
}
