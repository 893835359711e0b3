// Weighs what pages load, and says whether what `waypost serve` hands out is what the sources build.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { buildCore, buildServed } from "./build.mjs";

const LIMITS = { "core.js": 8 * 1024, "inbox.js": 20 * 1024, "worker.js": 4 * 1024 };
const SERVED = new URL("../src/waypost/features/feed/sdk/", import.meta.url);

const folder = await mkdtemp(join(tmpdir(), "waypost-sdk-"));
try {
  await buildCore(folder);
  await buildServed(folder);
  for (const [name, limit] of Object.entries(LIMITS)) {
    const built = await readFile(join(folder, name));
    const bytes = gzipSync(built, { level: 9 }).length;
    console.log(`${name.padEnd(10)} ${String(bytes).padStart(6)} of ${limit} bytes gzipped`);
    if (bytes > limit) fail(`${name} is too large`);
    if (name !== "core.js" && !built.equals(await readFile(new URL(name, SERVED)))) fail(`${name} is not what is built: npm run build`);
  }
} finally {
  await rm(folder, { recursive: true });
}

function fail(why) {
  console.error(why);
  process.exitCode = 1;
}
