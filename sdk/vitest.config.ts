import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      { test: { name: "logic", include: ["*/tests/logic/**/*.test.{ts,tsx}"] } },
      {
        test: {
          name: "browser",
          include: ["*/tests/browser/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 2, // a site's port each
        },
      },
    ],
  },
});
