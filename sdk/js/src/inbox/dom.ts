/** Elements, made without markup as text, so that a strict content security policy and trusted types have no objection. */

type Props = Record<string, string | boolean | undefined>;
type Child = Node | string | undefined | false;

/** Make an element; `class` is its part's name, too, so that pages can style it. */
export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  setProps(element, props);
  element.append(...children.filter((each): each is Node | string => !!each));
  return element;
}

/** Set attributes: true is present, false and undefined absent. */
export function setProps(element: Element, props: Props): void {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === false) element.removeAttribute(key);
    else element.setAttribute(key, value === true ? "" : value);
    if (key === "class" && value) element.setAttribute("part", String(value));
  }
}

/** Make a drawing of paths in a square of 24. */
export function drawing(size: number, ...paths: string[]): SVGElement {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  setProps(svg, { viewBox: "0 0 24 24", width: String(size), height: String(size), "aria-hidden": "true" });
  for (const d of paths) {
    const path = document.createElementNS(namespace, "path");
    path.setAttribute("d", d);
    svg.append(path);
  }
  return svg;
}

/** The address if a page may go there or load from there; a script in a link is none. */
export function safeUrl(url: string | null | undefined): string | undefined {
  if (!url) return undefined;
  try {
    return /^https?:$/.test(new URL(url, document.baseURI).protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}
