import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import type { NewEntry } from "../../src/audit/entry.js";
import { RemudaError } from "../../src/base/errors.js";
import { gate } from "../support/gate.js";
import { openFormBed } from "../support/form/form-bed.js";
import { token } from "../support/form/scripted-forms.js";

const path = "/vaults/v_1/items/the%2Fshop";
const submission = { token, version: 3, values: {} };

function post(url: string, body: unknown, host = "127.0.0.1"): string {
  const text = JSON.stringify(body);
  const head = [`POST ${url} HTTP/1.1`, `host: ${host}`, "content-type: application/json"];
  return [...head, `content-length: ${text.length}`, "", text].join("\r\n");
}

/** A server that keeps its entries, and stands still where it is told to. */
async function openBed() {
  const entries: NewEntry[] = [];
  const intents: string[] = [];
  const stops = { opening: async () => {}, beginning: async () => {}, submitting: async () => {} };
  const bed = await openFormBed(
    {},
    {
      audit: {
        record: (entry) => void entries.push(entry),
        recordNow: async (entry) => void entries.push(entry),
        begin(intent) {
          intents.push(intent);
          return stops.beginning();
        },
      },
    },
  );
  const open = bed.forms.open.bind(bed.forms);
  const submit = bed.forms.submit.bind(bed.forms);
  bed.forms.open = async (given) => {
    await stops.opening();
    return open(given);
  };
  bed.forms.submit = async (...given) => {
    await stops.submitting();
    return submit(...given);
  };
  return { ...bed, entries, intents, stops };
}
type Bed = Awaited<ReturnType<typeof openBed>>;

async function send({ port }: Bed, text: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(text);
  return socket;
}

/** Hangs up while the server stands still there, which then goes on; resolves once all is over. */
async function hangUp(bed: Bed, at: keyof Bed["stops"], text: string): Promise<void> {
  const { reached, pass, open } = gate();
  bed.stops[at] = pass;
  const socket = await send(bed, text);
  await reached;
  socket.destroy();
  // The server has heard of the end when it answers a question that comes after it.
  await fetch(`${bed.url}/form.css`);
  open();
  await expect.poll(() => bed.entries.length).toBeGreaterThan(0);
  bed.stops[at] = async () => {};
  await fetch(`${bed.url}/form.css`);
}

test("a question whose asker hangs up before the answer has an entry", async () => {
  const bed = await openBed();
  await hangUp(bed, "opening", post("/open", { token }));
  expect(bed.entries).toMatchObject([{ status: 499, route: "/open", clientIp: "127.0.0.1" }]);
  await bed.close();
});

test("a question that breaks off within its body has the address of its sender", async () => {
  const bed = await openBed();
  const socket = await send(bed, post("/submit", submission).slice(0, -5));
  await fetch(`${bed.url}/form.css`);
  socket.destroy();
  await expect.poll(() => bed.entries).toMatchObject([{ route: "/submit", clientIp: "127.0.0.1" }]);
  await bed.close();
});

test("each of the questions that were sent in a row has one, also what was not meant for this server", async () => {
  const bed = await openBed();
  const inRow = post("/open", { token }) + post("/open", { token }, "elsewhere.example");
  await hangUp(bed, "opening", inRow);
  await expect.poll(() => bed.entries.length).toBe(2);
  await bed.close();
  expect(bed.entries).toHaveLength(2);
});

test("a submission whose sender hangs up before it is on record changes nothing", async () => {
  const bed = await openBed();
  await hangUp(bed, "opening", post("/submit", submission));
  expect(bed.entries).toMatchObject([{ status: 499, route: "/submit", intent: undefined }]);
  await bed.close();
  expect([bed.entries.length, bed.intents, bed.forms.taken]).toEqual([1, [], []]);
});

test.each(["beginning", "submitting"] as const)(
  "a submission whose sender hangs up after that (%s) is on record with what came of it, once",
  async (at) => {
    const bed = await openBed();
    await hangUp(bed, at, post("/submit", submission));
    await bed.close();
    expect(bed.entries).toMatchObject([{ status: 200, path, intent: bed.intents[0] }]);
    expect([bed.intents.length, bed.forms.taken.length]).toEqual([1, 1]);
  },
);

test("one that could not be put on record has an entry with the intent, also where its sender has gone", async () => {
  const bed = await openBed();
  const { reached, pass, open } = gate();
  bed.stops.beginning = async () => {
    await pass();
    throw new RemudaError("store_unavailable");
  };
  const socket = await send(bed, post("/submit", submission));
  await reached;
  socket.destroy();
  await fetch(`${bed.url}/form.css`);
  open();
  await expect.poll(() => bed.entries.length).toBe(1);
  await bed.close();
  expect(bed.entries).toMatchObject([{ status: 499, path, intent: bed.intents[0] }]);
  expect(bed.forms.taken).toEqual([]);
});
