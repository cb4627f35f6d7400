import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { bound } from "../bound.js";

/** `oidc-provider`: of clients that are people. `realm-provider`: of the realm in docs/access.md. */
type Program = "oidc-provider" | "realm-provider";

/** A real OpenID Connect provider, in a process of its own. */
export class OidcIssuer {
  private constructor(
    readonly url: string,
    private readonly process: ChildProcess,
  ) {}

  static async start(program: Program = "oidc-provider"): Promise<OidcIssuer> {
    const script = fileURLToPath(new URL(`${program}.mjs`, import.meta.url));
    const [command = "", ...args] = bound(process.execPath, script);
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "ignore"] });
    const lines = createInterface({ input: child.stdout });
    const [url] = (await Promise.race([
      once(lines, "line"),
      once(child, "exit").then(() => Promise.reject(new Error("the provider did not start"))),
    ])) as [string];
    return new OidcIssuer(url, child);
  }

  /** The access token of one of its clients, for an audience. */
  async tokenOf(client: string, audience = "urn:remuda"): Promise<string> {
    const reply = await fetch(`${this.url}/token`, {
      method: "POST",
      body: new URLSearchParams({
        grant_type: "client_credentials",
        client_id: client,
        client_secret: `secret of ${client}`,
        resource: audience,
        scope: "api",
      }),
    });
    const body = (await reply.json()) as { access_token?: string };
    if (body.access_token === undefined) throw new Error(`no token: ${JSON.stringify(body)}`);
    return body.access_token;
  }

  /** It stands still: connections are taken by the kernel, and nobody answers. */
  freeze = (): boolean => this.process.kill("SIGSTOP");
  thaw = (): boolean => this.process.kill("SIGCONT");

  async stop(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const gone = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await gone;
  }
}
