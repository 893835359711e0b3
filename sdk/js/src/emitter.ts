/** Typed events: each name with what its listeners are given. */

type Listener<T> = (said: T) => void;

/** Something that can be listened to. */
export class Emitter<Events extends object> {
  #listeners = new Map<keyof Events, Set<Listener<never>>>();

  /** Call `listener` at each event of that name, until what is returned is called. */
  on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  /** Tell the listeners. One that fails keeps nothing from the others, and is reported as any uncaught error. */
  protected emit<Name extends keyof Events>(name: Name, said: Events[Name]): void {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      try {
        (listener as Listener<Events[Name]>)(said);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
