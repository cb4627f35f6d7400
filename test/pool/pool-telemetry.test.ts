import { describe, expect, test } from "vitest";
import { unsupportedOfAcquire } from "../../src/spec/unsupported-fields.js";
import { made, merged } from "../support/pool/specs.js";

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
