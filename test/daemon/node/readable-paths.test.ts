import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { guardReadable } from "../../../src/daemon/node/browser-host.js";

const base = mkdtempSync(join(tmpdir(), "remuda-test-readable-"));
const data = join(base, "data");
mkdirSync(join(data, "inner"), { recursive: true });
mkdirSync(join(base, "data-of-engine"));
symlinkSync(data, join(base, "link"));
afterAll(() => rmSync(base, { recursive: true }));

test.each([
  "/",
  "/proc",
  "/sys",
  "/dev/",
  "/etc/../etc",
  "/root",
  "/home",
  "engine",
  "./engine",
  data,
  base,
  join(data, "inner"),
  join(data, "not-there"),
  join(base, "link"),
  join(base, "link", "inner"),
])("%s may not be shown to browsers", async (path) => {
  await expect(guardReadable(["/usr/bin", path], [data])).rejects.toThrow(`browser.readable_paths: ${path} `);
});

test("what lies beside the daemon's directories may be", async () => {
  await guardReadable(["/usr/bin", "/opt", join(base, "data-of-engine")], [data]);
});
