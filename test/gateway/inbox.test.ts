import { expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { FairTurns } from "../../src/base/fair-turns.js";
import { defaultGate } from "../../src/gateway/gates/default-gate.js";
import { judgeMessage, type JudgedMessage } from "../../src/gateway/gates/judge.js";
import { Inbox } from "../../src/gateway/inbox.js";
import { DrivenClock } from "../support/driven-clock.js";

test.each([
  ["a short", ""],
  ["a long", "y".repeat(70_000)],
])(
  "%s command that cannot be carried out ends alone: its client is told, and the next is",
  async (_, pad) => {
    const context = { directories: { downloads: "/d", uploads: "/u", temporary: "/t" } };
    const judging = { gate: defaultGate, context };
    const acted: JudgedMessage[] = [];
    const inbox = new Inbox({
      ...judging,
      turn: new FairTurns(systemClock).open({ share: 1 }),
      judgeElsewhere: async (message) => judgeMessage(message, judging),
      act(judged) {
        if (judged.kind === "command" && judged.command.id === 7)
          throw new TypeError("Cannot convert object to primitive value");
        acted.push(judged);
        if (acted.length === 2) bothActed();
      },
      doubt: () => undefined,
      wait: () => {},
      proceed: () => {},
      kept: () => {},
    });
    let bothActed = (): void => {};
    const both = new Promise<void>((resolve) => (bothActed = resolve));
    for (const id of [7, 8])
      inbox.add(Buffer.from(JSON.stringify({ id, method: "Page.reload", params: { pad }, sessionId: "A1" })));
    await both;
    const [told, next] = acted;
    const error = { code: -32000, message: "The message cannot be processed" };
    expect(told?.kind === "fault" && JSON.parse(told.reply)).toEqual({ id: 7, error, sessionId: "A1" });
    expect(next).toMatchObject({ kind: "command", command: { id: 8 } });
  },
);

test("a client that is cut for the bytes of its first long message has it judged by nobody", async () => {
  let gone: AbortSignal | undefined;
  const inbox: Inbox = new Inbox({
    gate: defaultGate,
    context: { directories: { downloads: "/d", uploads: "/u", temporary: "/t" } },
    turn: new FairTurns(systemClock).open({ share: 1 }),
    async judgeElsewhere(_, signal) {
      gone = signal;
      return undefined;
    },
    act: () => {},
    doubt: () => undefined,
    wait: () => {},
    proceed: () => {},
    kept: (bytes) => bytes > 0 && inbox.close(),
  });
  inbox.add(
    Buffer.from(JSON.stringify({ id: 1, method: "Page.reload", params: { pad: "y".repeat(70_000) } })),
  );
  expect(gone?.aborted).toBe(true);
});

test("nothing more is read of a client before all that it has sent is judged, over several turns", async () => {
  const clock = new DrivenClock();
  const happened: (string | number)[] = [];
  const isOver = new Promise<void>((resolve) => {
    const inbox = new Inbox({
      gate: defaultGate,
      context: { directories: { downloads: "/d", uploads: "/u", temporary: "/t" } },
      turn: new FairTurns(clock).open({ share: 1 }),
      judgeElsewhere: async () => undefined,
      act(judged) {
        if (judged.kind === "command") happened.push(judged.command.id);
        // More than a turn.
        clock.stand(1);
      },
      doubt: () => undefined,
      wait: () => happened.push("held"),
      proceed() {
        happened.push("read on");
        resolve();
      },
      kept: () => {},
    });
    for (const id of [1, 2, 3, 4]) inbox.add(Buffer.from(JSON.stringify({ id, method: "Page.reload" })));
  });
  await isOver;
  expect(happened).toEqual([1, "held", 2, 3, 4, "read on"]);
});
