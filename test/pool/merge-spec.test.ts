import { describe, expect, test } from "vitest";
import type { ExtensionId, ProfileId } from "../../src/base/ids.js";
import type { PoolCreate, PoolPatch, SessionCreate, SessionPatch } from "../../src/spec/bodies.js";
import type { PoolSpec } from "../../src/spec/launch-template.js";
import {
  createPoolSpec,
  type SpecDefaults,
  isExpectedNetwork,
  changesLaunch,
  changesNetwork,
  mergePoolSpec,
  createSessionTemplate,
} from "../../src/pool/merge-spec.js";
import type { Resolved } from "../../src/registry/references.js";
import {
  unsupportedFields,
  unsupportedOfAcquire,
  unsupportedOfCreate,
  unsupportedOfPatch,
} from "../../src/spec/unsupported-fields.js";
import { patternsOf } from "../../src/base/net/hosts.js";

const defaults: SpecDefaults = {
  fillRatePerMinute: 25,
  maxFillRatePerMinute: null,
  engine: "chromium",
  privateHostsCeiling: patternsOf(["0.0.0.0/0", "::/0"]),
};

/** A selector means what it says: an id as well as a name. */
const meant = <Body extends Pick<PoolPatch, "extensions" | "profile">>(body: Body): Body & Resolved => ({
  ...body,
  ...(body.extensions && {
    extension_ids: body.extensions.map(({ id, name }) => (id ?? name) as ExtensionId),
  }),
  ...((body.profile?.id || body.profile?.name) && {
    profile_id: (body.profile.id || body.profile.name) as ProfileId,
  }),
});

function made(body: Partial<PoolCreate>, given: Partial<SpecDefaults> = {}): PoolSpec {
  const spec = createPoolSpec(meant({ size: 2, ...body }), { ...defaults, ...given });
  if (spec.kind === "refused") throw new Error(JSON.stringify(spec.details));
  return spec.value;
}

function merged(current: Partial<PoolCreate>, patch: PoolPatch): PoolSpec {
  const spec = mergePoolSpec(made(current), meant(patch), defaults);
  if (spec.kind === "refused") throw new Error(JSON.stringify(spec.details));
  return spec.value;
}

/** The fields that are at fault. */
function faultsOf(
  template: ReturnType<typeof createPoolSpec> | ReturnType<typeof createSessionTemplate>,
): readonly (string | undefined)[] {
  return template.kind === "refused"
    ? (template.details ?? []).map(({ message }) => message.split(":")[0])
    : [];
}
const faultsOfPool = (body: Partial<PoolCreate>): readonly (string | undefined)[] =>
  faultsOf(createPoolSpec(meant({ size: 2, ...body }), defaults));
const faultsOfPatch = (current: Partial<PoolCreate>, patch: PoolPatch): readonly (string | undefined)[] =>
  faultsOf(mergePoolSpec(made(current), meant(patch), defaults));
const faultsOfSession = (body: SessionCreate): readonly (string | undefined)[] =>
  faultsOf(createSessionTemplate(body, defaults));

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
    ["telemetry", { browser: { console: { enabled: true } } }, { telemetry: { enabled: false } }, undefined],
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
    const body = { telemetry: { browser: { page: { enabled: true } } } };
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

describe("refresh_on_profile_update", () => {
  const one = { profile: { name: "one" } };
  test.each([
    ["a new profile turns it on", {}, one, true],
    [
      "another profile turns it on",
      { ...one, refresh_on_profile_update: false },
      { profile: { name: "two" } },
      true,
    ],
    ["the same reference leaves it", { ...one, refresh_on_profile_update: false }, one, false],
    [
      "the same profile by its id leaves it",
      { ...one, refresh_on_profile_update: false },
      { profile: { id: "one" } },
      false,
    ],
    ["what is said counts", one, { ...one, refresh_on_profile_update: false }, false],
    ["clearing the profile turns it off", one, { profile: { id: "" } }, false],
    ["nothing said leaves it", one, { size: 3 }, true],
  ] as const)("%s", (...[, current, patch, then]) =>
    expect(merged(current, patch).refresh_on_profile_update).toBe(then),
  );
  test("it needs a profile", () => {
    expect(faultsOfPool({ refresh_on_profile_update: true })).toEqual(["refresh_on_profile_update"]);
    expect(faultsOfPatch(one, { profile: { id: "" }, refresh_on_profile_update: true })).toEqual([
      "refresh_on_profile_update",
    ]);
    expect(made(one).refresh_on_profile_update).toBe(true);
  });

  const selectors = [
    undefined,
    { id: "a" },
    { name: "a" },
    { id: "b" },
    { name: "b" },
    { id: "" },
    { name: "" },
    {},
  ] as const;
  const flags = [undefined, true, false] as const;
  const bodies = selectors.flatMap((profile) =>
    flags.map((flag) => ({
      ...(profile && { profile }),
      ...(flag !== undefined && { refresh_on_profile_update: flag }),
    })),
  );
  interface State {
    readonly profile: string | undefined;
    readonly isOn: boolean;
  }

  /**
   * docs/api.md#changing-a-pool once more: the state after a PATCH, or undefined where it is
   * refused.
   */
  function expected(
    before: State,
    { profile, refresh_on_profile_update: flag }: PoolPatch,
  ): State | undefined {
    if (profile && Object.keys(profile).length === 0) return undefined;
    const after = profile ? profile.id || profile.name || undefined : before.profile;
    if (after === undefined) return flag ? undefined : { profile: undefined, isOn: false };
    if (flag !== undefined) return { profile: after, isOn: flag };
    return { profile: after, isOn: after === before.profile ? before.isOn : true };
  }

  test("holds through every three PATCHes in a row, whatever each says of the profile and of the flag", () => {
    let seen = 0;
    const walk = (spec: PoolSpec, state: State, left: number): void => {
      expect([spec.profile_id, spec.refresh_on_profile_update]).toEqual([state.profile, state.isOn]);
      if (left === 0) return;
      for (const body of bodies) {
        const outcome = mergePoolSpec(spec, meant(body), defaults);
        const then = expected(state, body);
        expect(outcome.kind, JSON.stringify([state, body])).toBe(then ? "done" : "refused");
        if (outcome.kind !== "done" || !then) continue;
        seen += 1;
        walk(outcome.value, then, left - 1);
      }
    };
    walk(made({}), { profile: undefined, isOn: false }, 3);
    expect(seen).toBeGreaterThan(1000);
  });
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
  [{ telemetry: { enabled: false, browser: { page: { enabled: false } } } }, []],
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

describe("expected_network", () => {
  test.each([
    [undefined, {}, true],
    [undefined, { private_hosts: [] }, false],
    [{ private_hosts: [] }, {}, false],
    [{ private_hosts: [] }, { private_hosts: [] }, true],
    [{ allowed_hosts: ["a"] }, { allowed_hosts: [" A "] }, true],
    [{ allowed_hosts: ["a"] }, { allowed_hosts: ["a"], proxy_routes: [] }, false],
    [{ allowed_hosts: ["a", "b"] }, { allowed_hosts: ["b", "a"] }, false],
    [{ allowed_hosts: ["a"] }, { allowed_hosts: [] }, false],
    [
      { proxy_routes: [{ hosts: ["a"], proxy: { id: "p" } }] },
      { proxy_routes: [{ proxy: { id: "p" }, hosts: ["a"] }] },
      true,
    ],
    [
      { proxy_routes: [{ hosts: ["a"], proxy: { id: "p" } }] },
      { proxy_routes: [{ hosts: ["a"], proxy: { name: "p" } }] },
      false,
    ],
  ])("saved %j, expected %j: %s", (saved, expected, then) =>
    expect(isExpectedNetwork(saved, expected)).toBe(then),
  );
});

describe("generations", () => {
  test.each([
    [{ size: 9 }, false, false],
    [{ name: "other" }, false, false],
    [{ timeout_seconds: 99 }, false, false],
    [{ fill_rate_per_minute: 9 }, false, false],
    [{ reset_on_release: "state" }, false, false],
    [{ headless: true }, true, false],
    [{ memory: "16GiB" }, true, false],
    [{ start_url: "https://a.example" }, true, false],
    [{ network: { allowed_hosts: ["A.example "] } }, false, false],
    [{ network: { allowed_hosts: ["b.example"] } }, true, true],
    [{ network: {} }, true, true],
    [{ network: { allowed_hosts: ["a.example"], private_hosts: [] } }, true, false],
    [{ extensions: [{ name: "a" }, { id: "b" }], profile: { name: "p" } }, false, false],
    [{ extensions: [{ id: "b" }, { id: "a" }] }, true, false],
    [{ extensions: [] }, true, false],
    [{ profile: { id: "q" } }, true, false],
    [{ profile: { id: "" } }, true, false],
    [{ refresh_on_profile_update: false }, false, false],
  ] as [PoolPatch, boolean, boolean][])(
    "a PATCH of %j: a new launch %s, a new network %s",
    (patch, isLaunch, isNetwork) => {
      const current = {
        network: { allowed_hosts: ["a.example"] },
        extensions: [{ id: "a" }, { name: "b" }],
        profile: { id: "p" },
      };
      const [before, after] = [made(current), merged(current, patch)];
      expect([changesLaunch(before, after), changesNetwork(before, after)]).toEqual([isLaunch, isNetwork]);
    },
  );
});

describe("telemetry", () => {
  const usual = {
    control: { enabled: true },
    connection: { enabled: true },
    system: { enabled: true },
    captcha: { enabled: true },
  };
  test("enabled true is the default set, besides what is there", () => {
    expect(made({ telemetry: { enabled: true } }).telemetry).toEqual({ enabled: true, browser: usual });
    const control = { enabled: false, cdp: { excluded_methods: ["Page.reload" as const] } };
    const current = { storage: { enabled: true }, browser: { control, page: { enabled: true } } };
    expect(merged({ telemetry: current }, { telemetry: { enabled: true } }).telemetry).toEqual({
      enabled: true,
      storage: { enabled: true },
      browser: { ...usual, control: { ...control, enabled: true }, page: { enabled: true } },
    });
  });
  test("category settings are merged onto what is there, field by field", () => {
    const telemetry = { browser: { control: { enabled: true, cdp: { excluded_methods: ["Page.reload"] } } } };
    expect(
      merged(
        { telemetry },
        { telemetry: { browser: { control: { enabled: false }, page: { enabled: true } } } },
      ).telemetry,
    ).toEqual({
      browser: {
        control: { enabled: false, cdp: { excluded_methods: ["Page.reload"] } },
        page: { enabled: true },
      },
    });
  });
  const off = {
    control: { enabled: false },
    connection: { enabled: false },
    system: { enabled: false },
    captcha: { enabled: false },
  };
  test.each([
    [undefined, false],
    [null, false],
    [{}, false],
    [{ enabled: false }, false],
    [{ enabled: true }, true],
    [{ enabled: true, browser: off }, false],
    [{ browser: off }, false],
    [{ browser: { page: { enabled: true } } }, true],
    [{ enabled: true, browser: { ...off, page: { enabled: true } } }, true],
  ])("%j captures: %s", (telemetry, then) =>
    expect(unsupportedOfAcquire(telemetry === undefined ? {} : { telemetry })).toEqual(
      then ? ["telemetry"] : [],
    ),
  );
});

describe("sessions", () => {
  const session = (body: SessionCreate) => {
    const template = createSessionTemplate(meant(body), defaults);
    return template.kind === "done" ? template.value : template;
  };
  test.each([true, false])("a session says whether its profile is saved: %s", (save_changes) => {
    expect(session({ profile: { name: "p", save_changes }, extensions: [{ id: "e" }] })).toMatchObject({
      profile: { name: "p", save_changes },
      profile_id: "p",
      extension_ids: ["e"],
    });
  });
  test.each([
    [{ save_changes: true }, ["profile"]],
    [{}, ["profile"]],
    [{ id: "a", name: "b" }, ["profile"]],
    [{ id: "", save_changes: true }, []],
  ])("a session with the profile %j has the faults %j", (profile, faults) => {
    expect(faultsOfSession({ profile })).toEqual(faults);
    if (faults.length === 0) expect(session({ profile })).toEqual(session({}));
  });
  test.each([
    [{ gpu: true, headless: true }, ["gpu"]],
    [{ gpu: true, memory: "8GiB" }, ["memory"]],
    [{ video_memory: "2GiB" }, ["video_memory"]],
    [{ gpu: true, video_memory: "4GiB" }, []],
    [{ proxy: { mode: "direct" }, proxy_id: "p" }, ["proxy"]],
    [{ proxy: { mode: "direct" }, proxy_id: "" }, []],
    [{ proxy: {} }, ["proxy"]],
    [{ proxy: { mode: "direct", id: "p" } }, ["proxy"]],
    [{ vaults: [{}] }, ["vaults"]],
  ] as [SessionCreate, string[]][])("%j has the faults %j", (body, faults) =>
    expect(faultsOfSession(body)).toEqual(faults),
  );

  test.each([
    [{ proxy: { mode: "default" } }, []],
    [{ proxy: { id: "p" } }, []],
    [{ vaults: [] }, []],
    [{ vaults: [{ id: "v" }] }, ["vaults"]],
    [{ invocation_id: "i" }, ["invocation_id"]],
  ] as [SessionCreate, string[]][])("%j asks for what is not built: %j", (body, fields) =>
    expect(unsupportedOfCreate(body)).toEqual(fields),
  );

  test.each([
    [{}, []],
    [{ network: { allowed_hosts: null } }, []],
    [{ network: { allowed_hosts: ["a"] } }, []],
    [{ profile: { name: "p" } }, []],
    [{ proxy: { mode: "direct" } }, []],
    [{ proxy: { name: "p" } }, []],
    [{ proxy_id: "" }, []],
    [{ proxy_id: "p" }, []],
    [{ telemetry: { enabled: true } }, ["telemetry"]],
  ] as [SessionPatch, string[]][])("a PATCH of %j asks for what is not built: %j", (body, fields) =>
    expect(unsupportedOfPatch(body)).toEqual(fields),
  );
});

test.each([
  [{}, []],
  [{ browser_policy: { HomepageLocation: "x" } }, []],
  [{ extensions: [{ id: "e" }] }, []],
  [{ network: { private_hosts: [] } }, []],
  [{ network: { allowed_hosts: ["a"] } }, []],
  [{ network: { proxy_routes: [{ hosts: ["a"], proxy: { id: "p" } }] } }, []],
  [{ profile: { id: "p" } }, []],
  [{ proxy_id: "p" }, []],
  [{ telemetry: { enabled: true } }, ["telemetry"]],
] as [Partial<PoolCreate>, string[]][])("a pool with %j is not filled for %j", (body, fields) =>
  expect(unsupportedFields(made(body))).toEqual(fields),
);
