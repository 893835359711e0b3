/** Several tabs of one user: one of them leads, holds the connection and tells the others. */

/** Speaks with the other tabs, and leads them when it is this one's turn. */
export class Tabs<Said> {
  #name: string;
  #channel: BroadcastChannel | undefined;

  constructor(name: string, heard: (said: Said) => void) {
    this.#name = name;
    if (!canShare()) return;
    this.#channel = new BroadcastChannel(name);
    this.#channel.onmessage = (event) => heard(event.data as Said);
  }

  /** Tell the other tabs. */
  say(said: Said): void {
    this.#channel?.postMessage(said);
  }

  /** Do `work` once no other tab does it: at once, or when the one that does is closed. */
  async lead(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
    if (!canShare()) return work();
    await navigator.locks.request(this.#name, { signal }, work).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  /** Hear and say nothing more. */
  close(): void {
    this.#channel?.close();
    this.#channel = undefined;
  }
}

/** Whether tabs can agree: locks are there in secure contexts alone. */
function canShare(): boolean {
  return typeof BroadcastChannel !== "undefined" && navigator.locks !== undefined;
}
