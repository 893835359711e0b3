/** Waits. */

const FIRST_MS = 1_000;
const LONGEST_MS = 30_000;

/** Wait, or until `signal` aborts. */
export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const ended = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", ended);
      resolve();
    };
    const timer = setTimeout(ended, ms);
    signal?.addEventListener("abort", ended);
  });
}

/** How long to wait after so many failures in a row: doubled each time, and a random half of it taken off, so that
 * those who failed together do not come back together. */
export function backoffMs(failures: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.max(0, failures - 1)) * (0.5 + Math.random() / 2);
}
