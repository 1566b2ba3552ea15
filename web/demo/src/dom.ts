// Helpers for elements, in place of a framework.

/** Returns the element with an id and a class. Throws if the page does not have it, which is a defect. */
export function byId<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${type.name} with id ${id}`);
  return found;
}

/** Returns a new element. `attributes` must not contain `style`, which the page's CSP forbids. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Makes an element the child number `i` of a list. One that is there already is not touched. */
export function putAt(list: HTMLElement, i: number, element: HTMLElement): void {
  const there = list.children[i];
  if (there !== element) list.insertBefore(element, there ?? null);
}

/** Returns a new element of a drawing. */
export function draw(tag: string, attributes: Record<string, string | number>, ...children: Node[]): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Ignores the second click of a double click, for a button that stops what its first click began. */
export function ignoreDoubleClicks(button: HTMLButtonElement): void {
  button.addEventListener('click', (event) => {
    if (event.detail > 1) event.preventDefault();
  });
}

/**
 * Ignores each second click of a double click that meets another control than the first one did, because the first one has
 * changed the page under the pointer.
 */
export function ignoreStrayClicks(): void {
  let pressed: Element | null = null;
  const take = (event: MouseEvent) => {
    const control = (event.target as Element).closest('button, a, label, summary');
    if (event.detail > 1 && control !== pressed) {
      event.preventDefault();
      event.stopPropagation();
    } else pressed = control;
  };
  document.addEventListener('click', take, true);
}

/** Turns a button on or off. A button that is off can have the focus, so that keyboard users keep their position. */
export function setOff(button: HTMLButtonElement, off: boolean): void {
  button.setAttribute('aria-disabled', String(off));
}

export const isOff = (button: HTMLButtonElement): boolean => button.getAttribute('aria-disabled') === 'true';
