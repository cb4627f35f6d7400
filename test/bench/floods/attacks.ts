import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocket } from "ws";
import { frame, openRawClient } from "../../support/gateway/raw-frames.js";

/** What an attack is aimed at. */
export interface AttackTarget {
  /** The CDP URL of the attacker's browser. */
  readonly cdpUrl: string;
}

/** Resolves when it is under way; it goes on until its process ends. */
export type Attack = (target: AttackTarget) => Promise<void>;

const mebibyte = 2 ** 20;
const times = (count: number): readonly number[] => Array.from({ length: count }, (_, place) => place);
const command = (a: string): string => `{"id":7,"method":"Storage.getStorageKey","params":{"a":${a}}}`;

/** So many clients; each sends the message again when it was answered. */
const repeat =
  (count: number, text: () => string): Attack =>
  async ({ cdpUrl }) => {
    const message = frame(text());
    for (const { socket } of await Promise.all(times(count).map(() => openRawClient(cdpUrl)))) {
      socket.on("data", () => socket.write(message));
      socket.write(message);
    }
  };

/** So many clients; each sends the bytes as fast as they are taken and reads what comes. */
const pour =
  (count: number, bytes: () => Buffer): Attack =>
  async ({ cdpUrl }) => {
    const poured = bytes();
    for (const { socket } of await Promise.all(times(count).map(() => openRawClient(cdpUrl)))) {
      const write = (): void => {
        while (socket.write(poured));
        socket.once("drain", write);
      };
      write();
    }
  };

const finishNothing: Attack = async ({ cdpUrl }) => {
  const part = frame(Buffer.alloc(15 * mebibyte), { isLast: false });
  const open = async (): Promise<void> => {
    const client = await openRawClient(cdpUrl).catch(() => undefined);
    client?.socket.write(part);
    await client?.closed;
    setTimeout(() => void open(), 50);
  };
  times(20).forEach(() => void open());
};

interface Reply {
  readonly id?: number;
  readonly result?: Record<string, unknown>;
}

interface Evaluating {
  /** Again when it was answered. */
  readonly isAgain?: boolean;
  /** Which hear what the page says. */
  readonly sessions?: number;
  /** The page is of a site, which may store; others are empty. */
  readonly isOfSite?: boolean;
  /** In a page more each so many ms, whatever became of those before. */
  readonly everyMs?: number;
}

/** Evaluates on the attacker's page. */
const evaluate =
  (
    expression: (origin: string) => string,
    { isAgain = false, sessions = 1, isOfSite = false, everyMs }: Evaluating = {},
  ): Attack =>
  async ({ cdpUrl }) => {
    const socket = new WebSocket(cdpUrl, { perMessageDeflate: false, maxPayload: 0 });
    await once(socket, "open");
    // Each session listens for answers of its own.
    socket.setMaxListeners(0);
    const ask = (method: string, params: object, sessionId?: string): Promise<Reply> =>
      new Promise((resolve) => {
        const id = Math.floor(Math.random() * 2 ** 30);
        const listen = (data: Buffer): void => {
          if (!data.subarray(0, 30).includes(`"id":${id},`)) return;
          socket.off("message", listen);
          resolve(data.length < mebibyte ? (JSON.parse(data.toString()) as Reply) : {});
        };
        socket.on("message", listen);
        socket.send(JSON.stringify({ id, method, params, sessionId }));
      });
    const origin = await serveBulk();
    const openPage = async (): Promise<string | undefined> => {
      const url = isOfSite ? `${origin}page` : "about:blank";
      const { result } = await ask("Target.createTarget", { url });
      const attach = async (): Promise<string> => {
        const attached = String(
          (await ask("Target.attachToTarget", { targetId: result?.["targetId"], flatten: true })).result?.[
            "sessionId"
          ],
        );
        await ask("Runtime.enable", {}, attached);
        return attached;
      };
      const [sessionId] = await Promise.all(times(sessions).map(attach));
      // A page that is still on its way to its site forgets what is evaluated in it.
      const isThere = { expression: `document.URL === ${JSON.stringify(url)}`, returnByValue: true };
      while (!JSON.stringify(await ask("Runtime.evaluate", isThere, sessionId)).includes('"value":true'));
      return sessionId;
    };
    const runIn = (sessionId: string | undefined): Promise<Reply> =>
      ask("Runtime.evaluate", { expression: expression(origin), returnByValue: true }, sessionId);
    const sessionId = await openPage();
    const run = (): Promise<Reply> => runIn(sessionId);
    await run();
    if (everyMs !== undefined) setInterval(() => void openPage().then(runIn), everyMs);
    const again = async (): Promise<void> => {
      for (;;) await run();
    };
    if (isAgain) void again();
  };

/** A site that sends without end, but for one page. */
async function serveBulk(): Promise<string> {
  const block = Buffer.alloc(mebibyte);
  const server = createServer(({ url }, response) => {
    if (url === "/page") {
      response.setHeader("content-type", "text/html").end("<!doctype html>");
      return;
    }
    response.setHeader("access-control-allow-origin", "*");
    const write = (): void => {
      while (response.write(block));
      response.once("drain", write);
    };
    write();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const download = (origin: string): string => `void (async () => {
  const reader = (await fetch(${JSON.stringify(origin)})).body.getReader();
  while (!(await reader.read()).done);
})()`;

const stored = (name: string): string => `void (async () => {
  const cache = await caches.open("filled");
  const part = crypto.getRandomValues(new Uint8Array(2 ** 16));
  const body = new Blob(Array.from({ length: 16 }, () => part));
  for (let at = 0; ; at += 1) await cache.put(${name}, new Response(body)).catch(() => new Promise((resolve) => setTimeout(resolve, 100)));
})()`;

const askForDenied = (scheme: "http" | "https") => (): string =>
  `void setInterval(() => {
    for (let at = 0; at < 100; at += 1) fetch("${scheme}://10.0.0." + at + ":" + (1024 + at) + "/", { mode: "no-cors" }).catch(() => {});
  }, 0)`;

/** Each by the words of the table. */
export const attacks = {
  "16 MiB of empty objects": repeat(4, () => command(`[${"{},".repeat(5 * mebibyte)}{}]`)),
  "16 MiB of text": repeat(4, () => command(`"${"é".repeat(7.5 * mebibyte)}"`)),
  "60 KiB of empty objects": repeat(16, () => command(`[${"{},".repeat(20_000)}{}]`)),
  "unfinished messages": finishNothing,
  "small commands": pour(16, () =>
    Buffer.concat(times(2000).map(() => frame('{"id":1,"method":"Browser.getVersion"}'))),
  ),
  "results of 8 MiB": evaluate(() => `"x".repeat(${8 * mebibyte})`, { isAgain: true }),
  "results of 90 MiB": evaluate(() => `"x".repeat(${90 * mebibyte})`, { isAgain: true }),
  "events of a page": evaluate(
    () => "void setInterval(() => { for (let at = 0; at < 500; at += 1) console.log(at); }, 0)",
  ),
  "events of a page to 200 sessions": evaluate(
    () => "void setInterval(() => { for (let at = 0; at < 50; at += 1) console.log(at); }, 0)",
    { sessions: 200 },
  ),
  "long events of a page to 200 sessions": evaluate(
    () => "void setInterval(() => console.log('x'.repeat(100000)), 0)",
    { sessions: 200 },
  ),
  "downloads of a page": evaluate((origin) => [1, 2, 3, 4].map(() => download(origin)).join(";")),
  "eight busy threads of a page": evaluate(
    () =>
      `void (globalThis.busy = Array.from({ length: 8 }, () => new Worker(URL.createObjectURL(new Blob(["for (;;);"])))))`,
  ),
  // Held by browser.max_tasks: a worker more has no thread.
  "processes and threads without end": evaluate(
    () =>
      `globalThis.held = []; void setInterval(() => { for (let at = 0; at < 50; at += 1) held.push(new Worker(URL.createObjectURL(new Blob(["setInterval(() => {}, 1)"])))); }, 20)`,
    { everyMs: 500 },
  ),
  // Held by the memory of the browser's class: the kernel ends its renderers, or the watch the browser.
  "memory without end": evaluate(
    () =>
      `globalThis.held = []; void setInterval(() => { for (let at = 0; at < 8; at += 1) held.push(new Uint8Array(2 ** 24).fill(1)); }, 10)`,
    { everyMs: 500 },
  ),
  // Held by browser.max_scratch_bytes: writes fail, or the watch ends the browser.
  "storage without end": evaluate(() => stored(`"/filled/" + at`), { isOfSite: true }),
  // Nothing holds it where scratch lies on a disk: the same MiB are written again and again.
  "disk I/O without end": evaluate(() => stored(`"/filled/" + at % 8`), { isOfSite: true }),
  "denied hosts of a page": evaluate(askForDenied("http")),
  "denied hosts of a page by https": evaluate(askForDenied("https")),
} satisfies Record<string, Attack>;
