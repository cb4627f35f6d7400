import { expect, test } from "vitest";
import { Conversation } from "../../../src/gateway/bidi/conversation.js";
import type { BidiReply } from "../../support/gateway/raw-bidi.js";

const session = { id: "s", webSocketUrl: "ws://here", product: "Chrome/1.2", userAgent: "agent" };

test("commands beyond 10,000 that wait for their answers are refused until one is answered", () => {
  const sent: BidiReply[] = [];
  const conversation = new Conversation({
    setup: { session, options: {} },
    mapper: { start: () => new Promise(() => {}), fromClient: () => {} },
    send: (message) => sent.push(JSON.parse(message) as BidiReply),
    end: () => {},
  });
  const ask = (id: number): void =>
    conversation.take(Buffer.from(JSON.stringify({ id, method: "browsingContext.getTree", params: {} })));
  for (let id = 1; id <= 10_001; id += 1) ask(id);
  expect(sent).toEqual([
    { type: "error", id: 10_001, error: "unknown error", message: expect.stringMatching(/^More than 10000/) },
  ]);
  conversation.toClient({ type: "success", id: 1, result: {} });
  ask(10_002);
  expect(sent.map(({ id }) => id)).toEqual([10_001, 1]);
});

test("a command that comes when the session has just started does not overtake those that waited for it", async () => {
  const toMapper: number[] = [];
  const conversation = new Conversation({
    setup: { session, options: {} },
    mapper: { start: async () => {}, fromClient: ({ id }) => void toMapper.push(id) },
    send: () => {},
    end: () => {},
  });
  const ask = (id: number): void =>
    conversation.take(Buffer.from(JSON.stringify({ id, method: "browsingContext.getTree", params: {} })));
  ask(1);
  ask(2);
  await Promise.resolve();
  conversation.toClient({ type: "success", id: -1, result: {} });
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  ask(3);
  await new Promise(setImmediate);
  ask(4);
  expect(toMapper).toEqual([-1, 1, 2, 3, 4]);
});
