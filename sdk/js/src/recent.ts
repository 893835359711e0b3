/** The ids that were seen last, so that what comes twice is shown once. */

const LIMIT = 200;

/** A set of the last 200 ids. */
export class Recent {
  #ids: Set<string>;

  constructor(ids: Iterable<string> = []) {
    this.#ids = new Set(ids);
  }

  /** Note an id; whether it is new. */
  add(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    for (const oldest of this.#ids) {
      if (this.#ids.size <= LIMIT) break;
      this.#ids.delete(oldest);
    }
    return true;
  }

  /** The ids, the oldest first. */
  list(): string[] {
    return [...this.#ids];
  }
}
