/** The pane behind the settings button: what the user wants to be sent, by which channel. */

import type { Waypost } from "../client.js";
import type { Preferences, TypePreference } from "../preferences.js";
import type { Problem } from "../problem.js";
import { h } from "./dom.js";
import type { Texts } from "./texts.js";

/** The user's choices, read when the pane is opened and written with each click. */
export class Choices {
  readonly root = h("div", { class: "choices" });
  #failed: (problem: Problem) => void;
  #done: () => void;

  constructor(failed: (problem: Problem) => void, done: () => void) {
    this.#failed = failed;
    this.#done = done;
  }

  /** Read them, and show them in these words. */
  async show(client: Waypost, texts: Texts): Promise<void> {
    try {
      this.#render(await client.preferences(), client, texts);
    } catch (problem) {
      this.#failed(problem as Problem);
    }
  }

  #render(said: Preferences, client: Waypost, texts: Texts): void {
    const nothing = this.#box(texts.nothing, !said.enabled, (isOn) => this.#write(client, texts, { enabled: !isOn }));
    this.root.replaceChildren(...said.types.map((type) => this.#type(type, client, texts)), nothing);
  }

  #type(type: TypePreference, client: Waypost, texts: Texts): HTMLElement {
    const boxes = h("fieldset", { class: "choice" }, h("legend", {}, type.title));
    if (type.critical) {
      boxes.append(texts.always);
      return boxes;
    }
    const wanted = Object.fromEntries(Object.entries(type.channels).map(([name, isOn]) => [name, isOn && type.enabled]));
    for (const [name, isOn] of Object.entries(wanted)) {
      const write = (isNowOn: boolean) => {
        wanted[name] = isNowOn;
        const choice = { enabled: Object.values(wanted).some(Boolean), channels: { ...wanted } };
        return this.#write(client, texts, { types: { [type.name]: choice } });
      };
      boxes.append(this.#box(texts.channels[name] ?? name, isOn, write));
    }
    return boxes;
  }

  #box(words: string, isOn: boolean, write: (isOn: boolean) => void): HTMLElement {
    const box = h("input", { type: "checkbox", checked: isOn });
    box.onchange = () => write(box.checked);
    return h("label", {}, box, words);
  }

  async #write(client: Waypost, texts: Texts, change: Parameters<Waypost["prefer"]>[0]): Promise<void> {
    try {
      await client.prefer(change);
      this.#done();
    } catch (problem) {
      this.#failed(problem as Problem);
      await this.show(client, texts);
    }
  }
}
