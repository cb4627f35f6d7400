import { describe, expect, test } from "vitest";
import { wholeOf } from "../../../src/browser/cdp/frame.js";
import { findTarget } from "../../../src/browser/cdp/target-event.js";
import { parseCommand as parse } from "../../../src/gateway/cdp/command.js";
import {
  findAttached,
  findCrashedTarget,
  findDetachedSession,
  findScreencast,
  rootReply,
  withId,
  withoutSession,
} from "../../../src/gateway/cdp/message-edits.js";
import { processorMsOf } from "../../support/processor-time.js";

const parseCommand = (text: string): ReturnType<typeof parse> => parse(Buffer.from(text));

describe("a client's message", () => {
  test.each<[string, object]>([
    ['{"id":1,"method":"A.b"}', { id: 1, method: "A.b", params: {} }],
    [
      '{"id":-1,"method":"A.b","params":{"x":[1]},"sessionId":"S"}',
      { id: -1, method: "A.b", params: { x: [1] }, session: "S" },
    ],
    ['{"id":1,"method":"A.b","params":null}', { id: 1, method: "A.b", params: {} }],
    ['{"id":1,"method":"A.b","params":[],"sessionId":""}', { id: 1, method: "A.b", params: {} }],
    [
      '{"id":1,"method":"A.b","params":{"a":{"x":1},"b":[{"x":1},{"x":"\\"x\\":1,\\\\"}],"":":","__proto__":1}}',
      {
        id: 1,
        method: "A.b",
        params: JSON.parse(
          '{"a":{"x":1},"b":[{"x":1},{"x":"\\"x\\":1,\\\\"}],"":":","__proto__":1}',
        ) as object,
      },
    ],
    ['{"id":1,"\\u006dethod":"A.\\u0062"}', { id: 1, method: "A.b", params: {} }],
  ])("%s is a command", (text, command) => expect(parseCommand(text)).toEqual({ kind: "command", command }));

  test.each<[string, object]>([
    ["{", { error: { code: -32700, message: "JSON: the message cannot be parsed" } }],
    ["[]", { error: { code: -32600, message: "Message must be an object" } }],
    ["null", { error: { code: -32600, message: "Message must be an object" } }],
    [
      '{"id":"1","method":"A.b"}',
      { error: { code: -32600, message: "Message must have integer 'id' property" } },
    ],
    [
      '{"id":1.5,"method":"A.b"}',
      { error: { code: -32600, message: "Message must have integer 'id' property" } },
    ],
    [
      '{"id":4294967296,"method":"A.b"}',
      { error: { code: -32600, message: "Message must have integer 'id' property" } },
    ],
    ['{"id":1}', { id: 1, error: { code: -32600, message: "Message must have string 'method' property" } }],
    [
      '{"id":1,"method":"A.b","params":"x"}',
      { id: 1, error: { code: -32600, message: "Message may have object 'params' property" } },
    ],
    [
      '{"id":1,"method":"A.b","sessionId":3}',
      { id: 1, error: { code: -32600, message: "Message may have string 'sessionId' property" } },
    ],
    [
      '{"id":1,"method":"A.b","more":3}',
      {
        id: 1,
        error: {
          code: -32600,
          message: "Message has property other than 'id', 'method', 'sessionId', 'params'",
        },
      },
    ],
  ])("%s is a fault, in Chromium's words", (text, reply) => {
    const parsed = parseCommand(text);
    expect(parsed.kind === "fault" && JSON.parse(parsed.reply)).toEqual(reply);
  });
});

describe("a key that occurs twice is a fault", () => {
  test.each([
    '{"id":1,"method":"Browser.getVersion","method":"Browser.crash"}',
    '{"id":1,"method":"Browser.getVersion","\\u006dethod":"Browser.crash"}',
    '{"id":1,"id":1,"method":"A.b"}',
    '{"id":1,"method":"A.b","params":{"url":"a","url":"a"}}',
    '{"id":1,"method":"A.b","params":{"a":[{"b":{"c" :1,"d":":","c"\t: 2}}]}}',
    '{"id":1,"method":"A.b","params":{"\\\\":1,"\\\\":2}}',
    '{"id":1,"method":"A.b","params":{"\\"":1,"\\"":2}}',
    '{"id":1,"method":"A.b","params":{"":1,"":2}}',
    '{"id":1,"method":"A.b","params":{"__proto__":{},"__proto__":{}}}',
    `{"id":1,"method":"A.b","params":${'{"a":'.repeat(250)}{"b":1,"b":2}${"}".repeat(250)}}`,
  ])("%s", (text) => {
    const parsed = parseCommand(text);
    expect(parsed.kind === "fault" && JSON.parse(parsed.reply)).toEqual({
      id: 1,
      error: { code: -32600, message: "Message must not have a property twice" },
    });
  });

  test("found in a message of any make, and in none that has each key once", () => {
    const inner = ['"', "\\", "\\\\", ":", '":', "{", "x", " ", "\u2028", ""];
    for (let at = 0; at < 2_000; at += 1) {
      const pick = (by: number): string =>
        [0, 1, 2].map((turn) => inner[Math.floor((at * by) / (turn + 1)) % inner.length]).join("");
      const params = {
        [pick(1)]: pick(3),
        list: [pick(7), { [pick(11)]: { [pick(13)]: pick(17) } }, 1, null, true],
      };
      const once = JSON.stringify({ id: 1, method: "A.b", params }, null, at % 3);
      expect(parseCommand(once).kind, once).toBe("command");
      expect(
        parseCommand(
          once
            .replace(/\{(\s*)"list":/, '{$1"list":1,"list":')
            .replace(/,(\s*)"list":/, ',"list":1,$1"list":'),
        ).kind,
        once,
      ).toBe("fault");
    }
  });

  test("at a cost that grows with the message's length only", async () => {
    const long = JSON.stringify({
      id: 1,
      method: "A.b",
      params: { a: '\\"'.repeat(1_000_000), b: Array.from({ length: 60_000 }, () => ({ c: 1 })) },
    });
    const spentMs = await processorMsOf(() => expect(parseCommand(long).kind).toBe("command"));
    expect(spentMs).toBeLessThan(2_000);
  });
});

describe("a message from Chromium", () => {
  const reply = Buffer.from('{"id":1073741824,"result":{"sessionId":"S","a":","},"sessionId":"S"}');

  test("gets another id, shorter or longer, and the given buffer stays as it is", () => {
    const before = reply.toString();
    expect(withId(reply, 7).toString()).toBe('{"id":7,"result":{"sessionId":"S","a":","},"sessionId":"S"}');
    expect(withId(reply, -2147483647).toString()).toContain('{"id":-2147483647,"result"');
    expect(rootReply(reply, 7, "S").toString()).toBe('{"id":7,"result":{"sessionId":"S","a":","}}');
    const parts = [reply.subarray(0, 20), reply.subarray(20, 25), reply.subarray(25)];
    expect(wholeOf(withId(parts, 7))).toEqual(withId(reply, 7));
    expect(wholeOf(rootReply(parts, 7, "S"))).toEqual(rootReply(reply, 7, "S"));
    expect(reply.toString()).toBe(before);
  });

  test("loses the session at its tail only", () => {
    const event = Buffer.from('{"method":"A.b","params":{"sessionId":"S"},"sessionId":"S"}');
    expect(withoutSession(event, "S").toString()).toBe('{"method":"A.b","params":{"sessionId":"S"}}');
  });

  test("tells who was attached, detached or crashed", () => {
    const target = { targetId: "T", type: "page", title: '"url":"x"', url: "about:blank" };
    const attached = JSON.stringify({
      method: "Target.attachedToTarget",
      params: { sessionId: "C", targetInfo: target, waitingForDebugger: true },
    });
    expect(findAttached(Buffer.from(attached))).toEqual({ session: "C", target });
    expect(findAttached(Buffer.from('{"method":"Target.attachedToTarget","params":{}'))).toBeUndefined();
    const long = (url: string): Buffer =>
      Buffer.from(
        JSON.stringify({
          method: "Target.attachedToTarget",
          params: {
            sessionId: "C",
            targetInfo: { ...target, title: `,"url":"about:blank"`.repeat(200_000), url },
          },
        }),
      );
    expect(findAttached(long(`chrome://x/${"a".repeat(2 ** 20)}`))?.target?.url).toMatch(
      /^chrome:\/\/x\/a{100}/,
    );
    expect(findAttached(long('data:"'))?.target).toEqual({ ...target, title: "", url: "data:\\" });
    expect(
      findAttached(Buffer.from(attached.replace(/"url":.*/, `"x":"${"a".repeat(2 ** 21)}"}}}`)))?.target?.url,
    ).toMatch(/^chrome:/);
    const belongs = { browserContextId: "AB12", subtype: "prerender" };
    const created = (url: string): Buffer =>
      Buffer.from(
        `${JSON.stringify({ method: "Target.targetCreated", params: { targetInfo: { ...target, url, attached: false, ...belongs } } }).slice(0, -1)},"sessionId":"S"}`,
      );
    expect(findTarget(created(`data:,${"a".repeat(20_000)}`))).toMatchObject({
      targetId: "T",
      type: "page",
      ...belongs,
    });
    expect(findTarget([created(`data:,${"a".repeat(20_000)}`)])).toMatchObject(belongs);
    expect(
      findDetachedSession(
        Buffer.from('{"method":"Target.detachedFromTarget","params":{"sessionId":"C","targetId":"T"}'),
      ),
    ).toBe("C");
    expect(
      findCrashedTarget(
        Buffer.from('{"method":"Target.targetCrashed","params":{"targetId":"T","status":"killed"}'),
      ),
    ).toBe("T");
  });

  test("tells the screencast of a picture, by its tail", () => {
    const picture = Buffer.from(
      '{"method":"Page.screencastFrame","params":{"data":"AA==","metadata":{"sessionId":3},"sessionId":12},"sessionId":"S"}',
    );
    expect(findScreencast(picture)).toBe(12);
    expect(findScreencast([picture.subarray(0, 30), picture.subarray(30)])).toBe(12);
    expect(findScreencast(Buffer.from('{"method":"A.b","params":{"sessionId":12}}'))).toBeUndefined();
  });
});

test.each([
  `{"method":"Target.targetCreated"}`,
  `{"method":"Target.targetCreated","params":{"targetInfo":null}}`,
  `{"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"T","type":"page","title":"a","url":7}}}`,
])("an event that does not say whose it is names no target: %s", (text) =>
  expect(findTarget(Buffer.from(text))).toBeUndefined(),
);
