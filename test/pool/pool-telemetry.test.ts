import { describe, expect, test } from "vitest";
import type { Telemetry } from "../../src/spec/bodies.js";
import type { FieldFaults } from "../../src/spec/field-checks.js";
import { reportedMethods } from "../../src/spec/reported-methods.js";
import {
  checkTelemetry,
  exportedTo,
  lastingTelemetry,
  mergeTelemetry,
  telemetryOf,
} from "../../src/spec/telemetry.js";
import { captureSettings } from "../../src/telemetry/settings.js";
import { made, merged } from "../support/pool/specs.js";

const on = { enabled: true };
const off = { enabled: false };
const usual = { control: on, connection: on, system: on, captcha: on };
const collector = { id: "1".repeat(24) };
const allOff = { control: off, connection: off, system: off, captcha: off };

describe("what is captured of a browser that captured nothing before", () => {
  const table: [Telemetry | null | undefined, NonNullable<Telemetry["browser"]> | undefined][] = [
    [undefined, undefined],
    [null, undefined],
    [{}, undefined],
    [{ enabled: false }, undefined],
    [{ enabled: false, browser: {} }, undefined],
    [{ browser: {} }, undefined],
    [{ browser: { page: off } }, undefined],
    [{ browser: allOff }, undefined],
    [{ enabled: true, browser: allOff }, undefined],
    [{ storage: on }, undefined],
    [{ enabled: true }, usual],
    [{ enabled: true, browser: {} }, usual],
    [{ browser: { page: on } }, { ...usual, page: on }],
    [{ browser: { page: on, system: off } }, { ...usual, page: on, system: off }],
    [
      { enabled: true, browser: { ...allOff, page: on } },
      { ...allOff, page: on },
    ],
  ];
  test.each(table)("%j", (telemetry, browser) => {
    const spec = made(telemetry === undefined ? {} : { telemetry });
    expect(spec.telemetry?.browser).toEqual(browser);
    expect(spec.telemetry?.enabled).toBe(browser && true);
  });
});

describe("a change of what is captured", () => {
  const excluded = { cdp: { excluded_methods: ["Page.reload"] } };
  const exported = { otlp: { enabled: true, destination: collector } };
  const current: Telemetry = {
    enabled: true,
    browser: { ...usual, control: { enabled: true, ...excluded }, network: on },
    storage: off,
    export: exported,
  };
  const table: [Telemetry | null, Telemetry | undefined][] = [
    [null, current],
    [{}, current],
    [{ browser: {} }, current],
    [{ enabled: false }, undefined],
    [{ enabled: true }, { enabled: true, browser: usual, storage: off, export: exported }],
    [
      { enabled: true, browser: { page: on } },
      { enabled: true, browser: { ...usual, page: on }, storage: off, export: exported },
    ],
    [{ browser: { page: on } }, { ...current, browser: { ...current.browser, page: on } }],
    [
      { browser: { control: off } },
      { ...current, browser: { ...current.browser, control: { enabled: false, ...excluded } } },
    ],
    [{ browser: { ...allOff, network: off } }, undefined],
    [{ storage: on }, { ...current, storage: on }],
    // A field that is not sent stays, however deep it is.
    [{ browser: { control: { cdp: {} } } }, current],
    [{ storage: {} }, current],
    [{ export: {} }, current],
    [{ export: { otlp: {} } }, current],
    // An export that is switched on again names its destination, so none is kept where it is off.
    [{ export: { otlp: off } }, { ...current, export: { otlp: off } }],
  ];
  test.each(table)("%j", (patch, then) => {
    expect(mergeTelemetry(current, patch)).toEqual(then);
    expect(merged({ telemetry: current }, { telemetry: patch }).telemetry).toEqual(then);
  });

  test("a lease that has merged it keeps it, whatever its browser was launched with", () => {
    for (const [patch, then] of table) {
      const telemetry = JSON.stringify(lastingTelemetry(mergeTelemetry(current, patch)));
      for (const launched of [undefined, current, { enabled: true }, { browser: { screenshot: on } }]) {
        const lasting = telemetryOf(launched, { telemetry });
        expect(lasting?.browser).toEqual(then?.browser);
        expect(captureSettings(lasting)).toEqual(captureSettings(then));
      }
    }
  });

  test("what is switched off and on again has neither the storage nor the export of its browser's launch", () => {
    const kept = (launched: Telemetry | undefined, patch: Telemetry, before?: string): string =>
      JSON.stringify(lastingTelemetry(mergeTelemetry(telemetryOf(launched, { telemetry: before }), patch)));
    const offAndOn = kept(current, { enabled: true }, kept(current, { enabled: false }));
    const captured = captureSettings(telemetryOf(current, { telemetry: offAndOn }));
    expect(captured).toEqual(captureSettings({ enabled: true, browser: usual }));
    const again = kept(current, { browser: { page: on } }, offAndOn);
    expect(captureSettings(telemetryOf(current, { telemetry: again }))).toEqual(
      captureSettings({ enabled: true, browser: { ...usual, page: on } }),
    );
    const elsewhere = { otlp: { destination: { id: "2".repeat(24) } } };
    const sent = kept(current, { export: elsewhere }, offAndOn);
    expect(exportedTo(telemetryOf(current, { telemetry: sent }))).toBe("2".repeat(24));
  });

  test("an acquire's is merged over the pool's, whose own stays as it is", () => {
    const acquired = JSON.stringify({ browser: { page: on } });
    expect(telemetryOf(current, { telemetry: acquired })?.browser).toEqual({ ...current.browser, page: on });
    expect(telemetryOf(undefined, { telemetry: acquired })?.browser).toEqual({ ...usual, page: on });
    expect(telemetryOf(current, {})).toEqual(current);
    expect(telemetryOf(current, { telemetry: JSON.stringify({ enabled: false }) })).toBeUndefined();
  });
});

test.each([
  [{ otlp: { destination: collector } }, []],
  [{ otlp: { enabled: true, destination: collector } }, []],
  [{ otlp: { enabled: false } }, []],
  [{}, []],
  [{ otlp: { enabled: true } }, ["is required where enabled is true"]],
  [{ otlp: { destination: {} } }, ["must have exactly one of id and name"]],
  [{ otlp: { destination: { ...collector, name: "n" } } }, ["must have exactly one of id and name"]],
])("an export of %j has the faults %j", (exported, expected) => {
  const faults: FieldFaults = [];
  checkTelemetry(faults, { export: exported });
  expect(faults.map(({ message }) => message)).toEqual(
    expected.map((fault) => `telemetry.export.otlp.destination: ${fault}`),
  );
});

test.each([
  [{ destination: collector }, collector.id],
  [{ enabled: true, destination: collector }, collector.id],
  [{ enabled: false, destination: collector }, undefined],
  [{ enabled: false }, undefined],
  [undefined, undefined],
])("an export of %j goes to %s", (otlp, to) =>
  expect(exportedTo({ enabled: true, export: { ...(otlp && { otlp }) } })).toBe(to),
);

test("only commands that are told of can be excluded, and each that is none is told", () => {
  const faultsOf = (excluded_methods: string[]): FieldFaults => {
    const faults: FieldFaults = [];
    checkTelemetry(faults, { browser: { control: { cdp: { excluded_methods } } } });
    return faults;
  };
  expect(faultsOf([...reportedMethods])).toEqual([]);
  const field = "telemetry.browser.control.cdp.excluded_methods";
  expect(faultsOf(["Page.reload", "Input.dispatchKeyevent", "constructor"])).toEqual([
    { code: "invalid_input", message: `${field}[1]: is no command that is told of` },
    { code: "invalid_input", message: `${field}[2]: is no command that is told of` },
  ]);
});
