import { describe, expect, test } from "vitest";
import type { PoolCreate, PoolPatch } from "../../src/spec/bodies.js";
import type { PoolSpec } from "../../src/spec/launch-template.js";
import { createPoolSpec, mergePoolSpec } from "../../src/pool/merge-spec.js";
import {
  defaults,
  faultsOf,
  faultsOfPatch,
  faultsOfPool,
  made,
  meant,
  merged,
} from "../support/pool/specs.js";

test("a pool that says nothing has the contract's defaults", () => {
  expect(made({})).toEqual({
    size: 2,
    fill_rate_per_minute: 25,
    timeout_seconds: 600,
    reset_on_release: "none",
    refresh_on_profile_update: false,
    headless: false,
    stealth: false,
    kiosk_mode: false,
    engine: "chromium",
    memory: "8GiB",
    viewport: { width: 1920, height: 1080, refresh_rate: 25 },
  });
});

const on = { enabled: true };
const capturing = {
  enabled: true,
  browser: { captcha: on, connection: on, control: on, page: on, system: on },
};

describe("what a PATCH does to each field: set, left out, cleared", () => {
  const profile = { name: "p" };
  const table: [field: keyof PoolSpec, set: unknown, cleared: PoolPatch, then: unknown][] = [
    ["browser_policy", { HomepageLocation: "https://a.example" }, { browser_policy: {} }, undefined],
    ["extensions", [{ name: "e" }], { extensions: [] }, undefined],
    ["proxy_id", "proxy", { proxy_id: "" }, undefined],
    ["start_url", "https://a.example/", { start_url: "" }, undefined],
    ["profile", profile, { profile: { id: "" } }, undefined],
    ["profile", profile, { profile: { name: "" } }, undefined],
    ["network", { allowed_hosts: ["a.example"] }, { network: {} }, undefined],
    ["node_selector", { "example.com/disk": "fast" }, { node_selector: {} }, undefined],
    ["telemetry", capturing, { telemetry: { enabled: false } }, undefined],
    ["name", "herd", { name: "" }, "herd"],
    ["headless", true, { headless: false }, false],
    ["stealth", true, { stealth: false }, false],
    ["kiosk_mode", true, { kiosk_mode: false }, false],
    ["size", 3, { size: 1 }, 1],
    ["fill_rate_per_minute", 10, { fill_rate_per_minute: 0 }, 0],
    ["timeout_seconds", 60, { timeout_seconds: 10 }, 10],
    ["reset_on_release", "state", { reset_on_release: "none" }, "none"],
  ];
  test.each(table)("%s", (...[field, set, cleared, then]) => {
    const body = { [field]: set };
    expect(made(body)[field]).toEqual(set);
    expect(merged({}, body)[field]).toEqual(set);
    expect(merged(body, {})[field]).toEqual(set);
    expect(merged(body, cleared)[field]).toEqual(then);
  });

  test.each([null, {}])("telemetry %j leaves it as it is", (telemetry) => {
    const body = { telemetry: capturing };
    expect(merged(body, { telemetry }).telemetry).toEqual(body.telemetry);
  });

  test("clearing values at creation are as if they were left out", () => {
    expect(
      made({
        browser_policy: {},
        extensions: [],
        proxy_id: "",
        start_url: "",
        profile: { id: "" },
        network: {},
        telemetry: { enabled: false },
      }),
    ).toEqual(made({}));
  });
});

describe("viewport", () => {
  test.each([
    [{ width: 1920, height: 1080 }, 25],
    [{ width: 1920, height: 1200 }, 25],
    [{ width: 1921, height: 1200 }, 10],
    [{ width: 1280, height: 800 }, 60],
    [{ width: 1281, height: 800 }, 25],
    [{ width: 1, height: 1 }, 60],
    [{ width: 2560, height: 1440, refresh_rate: 60 }, 60],
  ])("%j has the refresh rate %i", (viewport, rate) => {
    expect(made({ viewport }).viewport).toEqual({ ...viewport, refresh_rate: rate });
    expect(
      merged({ viewport: { width: 5, height: 5, refresh_rate: 5 } }, { viewport }).viewport.refresh_rate,
    ).toBe(rate);
  });
});

describe("memory follows headless, and a named class has to fit it", () => {
  test.each([
    [{ headless: true }, "1GiB"],
    [{ headless: false }, "8GiB"],
    [{ headless: true, memory: "4GiB" }, "4GiB"],
    [{ memory: "16GiB" }, "16GiB"],
  ] as const)("%j gives %s", (body, memory) => expect(made(body).memory).toBe(memory));
  test.each([
    { headless: true, memory: "8GiB" },
    { headless: false, memory: "1GiB" },
    { memory: "2GiB" },
  ] as const)("%j is refused", (body) => {
    expect(faultsOfPool(body)).toEqual(["memory"]);
  });
  test("a PATCH that turns headless takes the class along", () => {
    expect(merged({ headless: true, memory: "4GiB" }, { headless: false }).memory).toBe("8GiB");
    expect(merged({ headless: true, memory: "4GiB" }, { stealth: true }).memory).toBe("4GiB");
    expect(faultsOfPatch({ headless: true }, { memory: "8GiB" })).toEqual(["memory"]);
  });
});

describe("engine", () => {
  const shell = { engine: "headless-shell" } as const;
  test.each([
    [{ ...shell, headless: true }, []],
    [shell, ["engine"]],
    [{ ...shell, headless: true, extensions: [{ id: "e" }] }, ["extensions"]],
    [{ ...shell, headless: true, browser_policy: { HomepageLocation: "x" } }, ["browser_policy"]],
  ] as const)("%j has the faults %j", (body, faults) =>
    expect(faultsOfPool(body as unknown as Partial<PoolCreate>)).toEqual(faults),
  );
  test.each([
    [{ headless: true }, "headless-shell"],
    [{}, "chromium"],
    [{ headless: true, extensions: [{ id: "e" }] }, "chromium"],
    [{ headless: true, chrome_policy: { HomepageLocation: "x" } }, "chromium"],
    [{ headless: true, engine: "chromium" as const }, "chromium"],
  ])("an operator's headless-shell is taken where it can do what is asked: %j gets %s", (body, engine) => {
    expect(made(body, { engine: "headless-shell" }).engine).toBe(engine);
  });
  test.each([
    [{ headless: false }, "chromium"],
    [{ browser_policy: { HomepageLocation: "x" } }, "chromium"],
    [{ extensions: [{ id: "e" }] }, "chromium"],
    [{ size: 3 }, "headless-shell"],
  ] as [PoolPatch, string][])(
    "where nobody has named it, it gives way to what a PATCH asks for: %j gets %s",
    (patch, engine) => {
      const operators = { ...defaults, engine: "headless-shell" as const };
      expect(mergePoolSpec(made({ headless: true }, operators), meant(patch), operators)).toMatchObject({
        kind: "done",
        value: { engine },
      });
      expect(
        mergePoolSpec(made({ headless: true, engine: "headless-shell" }), meant(patch), operators).kind,
      ).toBe(engine === "chromium" ? "refused" : "done");
    },
  );
});

test("what extensions and the profile are called by is told again as it was sent; pools never save", () => {
  const spec = made({ extensions: [{ name: "b" }, { id: "a" }], profile: { name: "p", save_changes: true } });
  expect(spec).toMatchObject({
    extensions: [{ name: "b" }, { id: "a" }],
    extension_ids: ["b", "a"],
    profile_id: "p",
  });
  expect(spec.profile).toEqual({ name: "p" });
  expect(
    merged({ extensions: [{ id: "a" }], profile: { id: "p" } }, { extensions: [], profile: { name: "" } }),
  ).toEqual(made({}));
});

test.each([
  [{ profile: {} }, ["profile"]],
  [{ profile: { id: "a", name: "b" } }, ["profile"]],
  [{ profile: { save_changes: true } }, ["profile"]],
  [{ profile: { id: "a", save_changes: true } }, []],
  [{ extensions: [{}] }, ["extensions"]],
  [{ extensions: [{ id: "a", name: "b" }] }, ["extensions"]],
  [
    { browser_policy: { HomepageLocation: "x" }, chrome_policy: { HomepageLocation: "x" } },
    ["chrome_policy"],
  ],
  [{ browser_policy: { HomepageLocation: "x".repeat(5 * 2 ** 20) } }, ["browser_policy"]],
  [{ browser_policy: { ExtensionSettings: {} } }, ["browser_policy.ExtensionSettings"]],
  [{ chrome_policy: { ProxyMode: "direct" } }, ["browser_policy.ProxyMode"]],
  [{ browser_policy: { DeveloperToolsAvailability: 1 } }, ["browser_policy.DeveloperToolsAvailability"]],
  [{ start_url: "file:///etc/passwd" }, ["start_url"]],
  [{ start_url: "chrome://settings" }, ["start_url"]],
  [{ start_url: "a.example" }, ["start_url"]],
  [{ start_url: "about:blank" }, []],
  [{ network: { allowed_hosts: [] } }, ["network.allowed_hosts"]],
  [{ network: { private_hosts: [], proxy_routes: [] } }, []],
  [{ network: { proxy_routes: [{ hosts: ["a"], proxy: {} }] } }, ["network.proxy_routes.proxy"]],
  [{ telemetry: { enabled: false, browser: { page: { enabled: true } } } }, ["telemetry"]],
  [{ telemetry: { enabled: false, browser: { page: { enabled: false } } } }, ["telemetry"]],
  [{ telemetry: { enabled: false, browser: {} } }, []],
] as [Partial<PoolCreate>, string[]][])("a pool with %j has the faults %j", (body, faults) => {
  expect(faultsOfPool(body)).toEqual(faults);
  expect(faultsOfPatch({}, body)).toEqual(faults);
});

test("a rate above the operator's maximum is refused, whoever names it", () => {
  expect(
    faultsOf(
      createPoolSpec({ size: 1, fill_rate_per_minute: 30 }, { ...defaults, maxFillRatePerMinute: 25 }),
    ),
  ).toEqual(["fill_rate_per_minute"]);
  expect(made({ fill_rate_per_minute: 25 }, { maxFillRatePerMinute: 25 }).fill_rate_per_minute).toBe(25);
});

test("a rate from before the operator's maximum was lowered keeps nobody from changing the rest", () => {
  const current = made({ fill_rate_per_minute: 100 });
  const lowered = { ...defaults, maxFillRatePerMinute: 25 };
  expect(mergePoolSpec(current, { timeout_seconds: 60 }, lowered)).toMatchObject({
    kind: "done",
    value: { fill_rate_per_minute: 100, timeout_seconds: 60 },
  });
  expect(faultsOf(mergePoolSpec(current, { fill_rate_per_minute: 99 }, lowered))).toEqual([
    "fill_rate_per_minute",
  ]);
});

test("every fault is told at once", () => {
  expect(
    faultsOfPool({
      memory: "1GiB",
      start_url: "x",
      extensions: [{}],
      refresh_on_profile_update: true,
      network: { allowed_hosts: [] },
    }),
  ).toEqual(["extensions", "start_url", "network.allowed_hosts", "memory", "refresh_on_profile_update"]);
});
