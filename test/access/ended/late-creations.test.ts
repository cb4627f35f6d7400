import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { extensionZip } from "../../support/archive/zip-bytes.js";
import { type Daemon, startDaemon } from "../../support/daemon/daemon.js";
import { file, multipartBody, multipartType } from "../../support/http/multipart-body.js";

let daemon: Daemon;
beforeAll(async () => {
  daemon = await startDaemon({
    file: { projects: { enabled: true }, telemetry: { export: { private_hosts: ["127.0.0.1"] } } },
  });
});
afterAll(() => daemon.stop());

/** A request whose body is sent later: it is let in by its headers alone. */
class Slow {
  readonly #socket: Socket;
  #got = "";

  constructor(
    path: string,
    project: string,
    private readonly body: string | Buffer,
  ) {
    const { port, hostname } = new URL(daemon.url);
    this.#socket = connect(Number(port), hostname);
    this.#socket.setEncoding("utf8").on("data", (text: string) => (this.#got += text));
    const headers = [
      `POST ${path} HTTP/1.1`,
      `Host: ${hostname}:${port}`,
      `Authorization: Bearer ${daemon.apiKey}`,
      `X-Kernel-Project-Id: ${project}`,
      `Content-Type: ${typeof body === "string" ? "application/json" : multipartType}`,
      `Content-Length: ${body.length}`,
      "Expect: 100-continue",
      "Connection: close",
    ];
    this.#socket.write(`${headers.join("\r\n")}\r\n\r\n`);
  }

  /** Node.js says so as it hands the request on: whatever comes after asks Redis after it. */
  async isLetIn(): Promise<void> {
    await until("100 Continue", () => this.#got.includes("100 Continue"));
  }

  /** Sends the body, and resolves with the answer's status and text. */
  async answer(): Promise<{ status: number; text: string }> {
    this.#socket.write(this.body);
    const text = await until("an answer", () => (this.#socket.closed ? this.#got : undefined), 60_000);
    return { status: Number(/HTTP\/1\.1 ([2-5]\d\d) /.exec(text)?.[1]), text };
  }
}

const inProject = (project: string) => ({ "x-kernel-project-id": project });
const proxy = { type: "custom", config: { host: "proxy.example", port: 3128 } };
const made: readonly (readonly [path: string, body: object | Buffer])[] = [
  ["/browser_pools", { size: 1, headless: true }],
  ["/browsers", { headless: true }],
  ["/profiles", { name: "late" }],
  ["/vaults", { name: "late" }],
  ["/proxies", proxy],
  ["/telemetry/destinations", { name: "late", endpoint: "http://127.0.0.1:9" }],
  ["/extensions", multipartBody([file("file", extensionZip())])],
];

test.each(made)("what is made at %s after its project was archived is taken back", async (path, body) => {
  const project = await daemon.call("POST /org/projects", { name: `of ${path.slice(1)}` });
  const id = String(project.body.id);
  const slow = new Slow(path, id, Buffer.isBuffer(body) ? body : JSON.stringify(body));
  await slow.isLetIn();
  expect(await daemon.call(`PATCH /org/projects/${id}`, { status: "archived" })).toMatchObject({
    status: 200,
  });
  const got = await slow.answer();
  expect(got).toMatchObject({ status: 404, text: expect.stringContaining("project_not_found") });
  await daemon.call(`PATCH /org/projects/${id}`, { status: "active" });
  expect((await daemon.call(`GET ${path}`, undefined, inProject(id))).body).toEqual([]);
  expect(await daemon.call(`DELETE /org/projects/${id}`)).toMatchObject({ status: 204 });
});
