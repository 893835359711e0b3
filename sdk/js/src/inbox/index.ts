/** The inbox as an element: loading this defines `<waypost-inbox>`. */

import { WaypostInbox } from "./element.js";

export * from "../index.js";
export { WaypostInbox };

if (!customElements.get("waypost-inbox")) customElements.define("waypost-inbox", WaypostInbox);

declare global {
  interface HTMLElementTagNameMap {
    "waypost-inbox": WaypostInbox;
  }
}
