import { describe, expect, test } from "vitest";
import { tellCommand } from "../../../src/telemetry/commands/tell.js";
import { examples } from "./examples.js";
import { secret } from "./secret.js";

const tell = (method: string, params: Record<string, unknown> = {}, session?: string) =>
  tellCommand({ id: 7, method, params, ...(session === undefined ? {} : { session }) });
/** The fields of a command, without those that every command has. */
function fieldsOf(method: string, params: Record<string, unknown>): object | undefined {
  const told = tell(method, params);
  if (!told?.data) return undefined;
  const { method: name, command_id, ...fields } = told.data;
  expect([name, command_id]).toEqual([method, 7]);
  return fields;
}

test.each(Object.entries(examples))("%s is told by what it does, and nothing secret of it", (method, row) => {
  const [params, told] = row;
  expect(fieldsOf(method, params as Record<string, unknown>)).toEqual(told);
  expect(JSON.stringify(tell(method, params as Record<string, unknown>))).not.toContain(secret);
});

test("a command has its id and its session; one of the whole browser has none", () => {
  expect(tell("Page.close", {}, "S1")?.data).toEqual({
    method: "Page.close",
    command_id: 7,
    session_id: "S1",
  });
  expect(tell("Page.close")?.data).toEqual({ method: "Page.close", command_id: 7 });
});

test("what is not reported is not told at all", () => {
  for (const method of ["Runtime.evaluate", "Page.enable", "toString", "__proto__", ""])
    expect(tell(method, { expression: secret })).toBeUndefined();
});

test("arguments that were not sent are left out, and null is none", () => {
  expect(fieldsOf("Input.dispatchMouseEvent", { type: "mouseMoved", x: null })).toEqual({
    event_type: "mouseMoved",
  });
  expect(fieldsOf("Page.captureScreenshot", {})).toEqual({});
  expect(fieldsOf("Page.navigate", { url: "no-scheme" })).toEqual({ referrer_present: false });
  expect(fieldsOf("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] })).toEqual({
    event_type: "touchEnd",
    touch_point_count: 0,
  });
});

test("a card is told as that alone", () => {
  const card = { number: secret, name: secret, expiryMonth: secret, expiryYear: secret, cvc: secret };
  expect(fieldsOf("Autofill.trigger", { fieldId: 1, card })).toEqual({ field_id: 1, mode: "card" });
});

describe("what a client makes up", () => {
  test("a word that the protocol does not have is `other`", () => {
    const mouse = { type: secret, button: secret, pointerType: secret };
    expect(fieldsOf("Input.dispatchMouseEvent", mouse)).toEqual({
      event_type: "other",
      button: "other",
      pointer_type: "other",
    });
    expect(fieldsOf("Page.setWebLifecycleState", { state: "" })).toEqual({ state: "other" });
  });

  test.each([
    ["a", undefined],
    ["é", undefined],
    [secret, undefined],
    ["F5", "F5"],
  ])("the key %s is told as %s", (key, named) => {
    expect(fieldsOf("Input.dispatchKeyEvent", { type: "char", key })).toEqual(
      named === undefined ? { event_type: "char" } : { event_type: "char", named_key: named },
    );
  });

  test.each([
    [`${secret}:x`, "other"],
    ["\u0001 data:text/html,x", "data"],
    ["view-source:https://x/", "view-source"],
    [`//${secret}:443/`, undefined],
    [secret, undefined],
  ])("the address %j is told as %s", (url, scheme) => {
    expect(fieldsOf("Target.createTarget", { url })).toEqual(scheme ? { url_scheme: scheme } : {});
  });

  test("an identifier has at most 128 characters, and no half of one", () => {
    const long = "x".repeat(127);
    expect(fieldsOf("Target.closeTarget", { targetId: `${long}yz` })).toEqual({ target_id: `${long}y` });
    expect(fieldsOf("Target.closeTarget", { targetId: `${long}😀` })).toEqual({ target_id: long });
    expect(tell("Page.close", {}, "s".repeat(200))?.data?.["session_id"]).toHaveLength(128);
  });
});

describe("arguments that do not decode", () => {
  const wrongs: readonly (readonly [method: string, params: Record<string, unknown>])[] = [
    ["Input.dispatchMouseEvent", {}],
    ["Input.dispatchMouseEvent", { type: 1 }],
    ["Input.dispatchMouseEvent", { type: "mouseMoved", x: "1" }],
    ["Input.dispatchMouseEvent", { type: "mouseMoved", x: JSON.parse("1e999") as number }],
    ["Input.dispatchMouseEvent", { type: "mouseMoved", clickCount: 1.5 }],
    ["Input.dispatchMouseEvent", { type: "mouseMoved", modifiers: 4_111_111_111_111_111 }],
    ["Input.insertText", {}],
    ["Input.insertText", { text: [secret] }],
    ["Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [1] }],
    ["Input.dispatchTouchEvent", { type: "touchStart", touchPoints: { length: 1 } }],
    ["DOM.setFileInputFiles", { files: [1] }],
    ["DOM.setFileInputFiles", { files: secret }],
    ["DOM.scrollIntoViewIfNeeded", { rect: secret }],
    ["Page.handleJavaScriptDialog", { accept: "yes" }],
    ["Page.handleJavaScriptDialog", { promptText: secret }],
    ["Browser.cancelDownload", {}],
    ["Autofill.trigger", { fieldId: secret }],
  ];
  test.each(wrongs)("%s %j has no event", (method, params) => {
    expect(tell(method, params)).toEqual({ method });
  });
});

describe("a command in a message", () => {
  const carry = (message: object | string, sessionId?: string) => ({
    message: typeof message === "string" ? message : JSON.stringify(message),
    ...(sessionId === undefined ? {} : { sessionId }),
  });
  const carrier = "Target.sendMessageToTarget";
  const click = { id: 3, method: "Input.insertText", params: { text: secret } };

  test("is told as itself, on the session that the message is for", () => {
    expect(tell(carrier, carry(click, "S2"), "S1")?.data).toEqual({
      method: "Input.insertText",
      command_id: 3,
      session_id: "S2",
      text_length: secret.length,
    });
  });

  test("is found within several", () => {
    const inner = { id: 5, method: carrier, params: carry(click, "S3") };
    expect(tell(carrier, carry(inner, "S2"))?.data).toMatchObject({ command_id: 3, session_id: "S3" });
  });

  test("that is none is not told", () => {
    expect(tell(carrier, carry({ id: 1, method: "Runtime.evaluate", params: { expression: secret } }))).toBe(
      undefined,
    );
    expect(tell(carrier, {})).toBeUndefined();
    expect(tell(carrier, carry("[]"))).toBeUndefined();
  });
});
