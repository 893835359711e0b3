/** What went wrong, in words for the person in front of the page. */

/** Kinds of problems: what the person can do differs, so the words do. */
export type ProblemKind = "offline" | "busy" | "signed-out" | "not-allowed" | "gone" | "failed";

/** The English words of each kind, which the inbox has in other languages, too. */
export const WORDS: Record<ProblemKind, string> = {
  offline: "You seem to be offline. Check your connection and try again.",
  busy: "The service is busy. Try again in a moment.",
  "signed-out": "You were signed out. Sign in again to go on.",
  "not-allowed": "You may not do that.",
  gone: "That is not there any more.",
  failed: "That did not work. Try again later.",
};

/** A problem whose `message` can be shown as it is; what the server said stays in `code`, for logs. */
export class Problem extends Error {
  override readonly name = "WaypostProblem";

  constructor(
    readonly kind: ProblemKind,
    readonly code: string = kind,
    readonly retryAfterS?: number,
  ) {
    super(WORDS[kind]);
  }

  /** Whether the same call may succeed later. */
  get isPassing(): boolean {
    return this.kind === "offline" || this.kind === "busy";
  }
}

/** Return what went wrong as a problem, whatever was thrown. */
export function problemOf(thrown: unknown): Problem {
  return thrown instanceof Problem ? thrown : new Problem("failed", String(thrown));
}

/** Make a problem of an answer that refuses. */
export async function refusal(answer: Response): Promise<Problem> {
  const said = (await answer.json().catch(() => ({}))) as { code?: string; error?: { code?: string } };
  const code = said.code ?? said.error?.code ?? `http_${answer.status}`;
  const seconds = Number(answer.headers.get("retry-after"));
  return new Problem(kindOf(answer.status), code, seconds > 0 ? seconds : undefined);
}

function kindOf(status: number): ProblemKind {
  if (status === 401) return "signed-out";
  if (status === 403) return "not-allowed";
  if (status === 404) return "gone";
  return status === 408 || status === 429 || status >= 500 ? "busy" : "failed";
}
