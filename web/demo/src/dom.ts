// The helpers that this page needs instead of a framework.

/** The element with that id, of that class; a page without it is a defect, said at once. */
export function byId<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${type.name} with id ${id}`);
  return found;
}

/** An element with attributes and children. `style` is left to style sheets and CSSOM: the page's CSP forbids it. */
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

/** The same, of a drawing. */
export function draw(tag: string, attributes: Record<string, string | number>, ...children: Node[]): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** A button that is off can still hold the focus, so that nobody loses their place. */
export function setOff(button: HTMLButtonElement, off: boolean): void {
  button.setAttribute('aria-disabled', String(off));
}

export const isOff = (button: HTMLButtonElement): boolean => button.getAttribute('aria-disabled') === 'true';
