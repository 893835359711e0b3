// Builds the packages into their dist folders, and what `waypost serve` hands out into its source tree.
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const common = { bundle: true, minify: true, format: "esm", target: "es2022", legalComments: "none", logLevel: "warning" };

/** The packages: what two of their files share is in a file of its own. */
export async function buildPackages() {
  for (const name of ["js", "react"]) await rm(here(`${name}/dist`), { recursive: true, force: true });
  await build({
    ...common,
    entryPoints: { index: here("js/src/index.ts"), inbox: here("js/src/inbox/index.ts"), sw: here("js/src/sw.ts") },
    outdir: here("js/dist"),
    splitting: true,
    chunkNames: "shared-[hash]",
  });
  await build({
    ...common,
    entryPoints: { index: here("react/src/index.ts") },
    outdir: here("react/dist"),
    external: ["react", "react/*", "@waypost/client", "@waypost/client/*"],
  });
}

/** What pages load without any package: the inbox as a module, the service worker as a script, each in one file. */
export async function buildServed(folder) {
  await build({ ...common, entryPoints: { inbox: here("js/src/inbox/index.ts") }, outdir: folder });
  await build({ ...common, format: "iife", entryPoints: { worker: here("js/src/worker.ts") }, outdir: folder });
}

/** The core alone, in one file, to be weighed. */
export async function buildCore(folder) {
  await build({ ...common, entryPoints: { core: here("js/src/index.ts") }, outdir: folder });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await buildPackages();
  if (process.argv[2] !== "packages") await buildServed(here("../src/waypost/features/feed/sdk"));
}
