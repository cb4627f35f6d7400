import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readlinkSync } from "node:fs";
import { Server, Socket } from "node:net";
import { fileURLToPath } from "node:url";
import type { Clock, Millis } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import type { NetlinkMessage } from "./netlink.js";

/** A network namespace, held by nothing but these. */
export interface MadeNamespace {
  /** The server that listens inside the namespace. */
  readonly server: Server;
  /** A descriptor of the namespace. */
  readonly namespace: number;
  /** A descriptor of the user namespace that owns it; absent where root made it. */
  readonly userNamespace?: number;
}

interface MakerParts {
  /** What the helper is started behind: nothing for root, unshare(1) for everybody else. */
  readonly prefix: readonly string[];
  readonly network: readonly NetlinkMessage[];
  readonly port: number;
  readonly clock: Clock;
  /** The limit for one namespace, which includes the start of the helper. */
  readonly limitMs: Millis;
}

interface HelperAnswer {
  readonly kind: "made" | "refused";
  readonly why?: string;
}

interface Helper {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  hasEnded: boolean;
  /** Takes the helper's next answer. */
  onAnswer: ((answer: HelperAnswer, server: unknown) => void) | undefined;
  /** Is called instead where it ends before that. */
  onEnd: (() => void) | undefined;
  /** Why it ended, or could not be started. */
  why(): string;
}

const script = fileURLToPath(new URL("helper.mjs", import.meta.url));
const errorsBytes = 2_000;
/** A helper that is at work needs a millisecond. */
const atWorkLimitMs: Millis = 2_000;
const endLimitMs: Millis = 5_000;

/**
 * Makes one namespace at a time with a helper process, which it starts when it needs one and which goes on
 * until `end`. Every namespace of one helper is owned by the same user namespace, which that helper had made
 * for it.
 */
export class NamespaceMaker {
  #helper: Helper | undefined;
  #ends = 0;

  constructor(private readonly parts: MakerParts) {}

  /**
   * Throws, with a text for people, where there can be none. A helper that failed is ended; where it had been
   * at work before, as one that somebody has stopped, another is asked once.
   */
  async make(): Promise<MadeNamespace> {
    const { limitMs } = this.parts;
    const ends = this.#ends;
    if (this.#helper === undefined) return await this.#make(limitMs);
    try {
      return await this.#make(Math.min(limitMs, atWorkLimitMs));
    } catch (error) {
      if (this.#ends !== ends) throw error;
      return await this.#make(limitMs);
    }
  }

  async #make(limitMs: Millis): Promise<MadeNamespace> {
    const helper = (this.#helper ??= this.#start());
    const { clock } = this.parts;
    try {
      return await within(clock, { what: "making a network namespace", limitMs }, this.#ask(helper));
    } catch (error) {
      await this.#endHelper();
      throw error;
    } finally {
      helper.onAnswer = helper.onEnd = undefined;
    }
  }

  /** Resolves when the helper is gone. Nothing that it made goes with it. */
  async end(): Promise<void> {
    this.#ends += 1;
    await this.#endHelper();
  }

  async #endHelper(): Promise<void> {
    const helper = this.#helper;
    if (helper === undefined) return;
    this.#helper = undefined;
    helper.child.ref();
    helper.child.kill("SIGKILL");
    const { clock } = this.parts;
    // The helper is dead by now; only the end of its output is waited for.
    await within(clock, { what: "ending the helper", limitMs: endLimitMs }, helper.ended).catch(() => {});
  }

  #start(): Helper {
    const [program = "", ...args] = [...this.parts.prefix, process.execPath, script];
    // It is told nothing: neither the daemon's environment nor any descriptor but the channel's.
    const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe", "ipc"], cwd: "/", env: {} });
    let errors = "";
    child.stderr
      ?.setEncoding("utf8")
      .on("data", (text: string) => void (errors = (errors + text).slice(-errorsBytes)));
    child.on("error", (error) => void (errors += error.message));
    const ended = Promise.race([once(child, "close"), once(child, "error")]).catch(() => {});
    const why = (): string => errors.trim() || "the helper that makes network namespaces ended";
    const helper: Helper = { child, ended, hasEnded: false, why, onAnswer: undefined, onEnd: undefined };
    void ended.then(() => {
      helper.hasEnded = true;
      helper.onEnd?.();
    });
    child.on("message", (answer, server) => {
      if (helper.onAnswer) helper.onAnswer(answer as HelperAnswer, server);
      // A socket that nobody waits for any more would hold its namespace for ever.
      else if (server instanceof Server) server.close();
    });
    // Namespaces kept for later hold no process open, and neither does who makes them.
    child.unref();
    child.channel?.unref();
    if (child.stderr instanceof Socket) child.stderr.unref();
    return helper;
  }

  async #ask(helper: Helper): Promise<MadeNamespace> {
    const { child } = helper;
    const { network: messages, port } = this.parts;
    child.channel?.ref();
    try {
      // Not a race with `ended`: a promise that lives as long as the helper would keep every answer as long.
      return await new Promise<MadeNamespace>((resolve, reject) => {
        helper.onAnswer = (made, server) => {
          try {
            resolve(this.#accept(child, made, server));
          } catch (error) {
            reject(error as Error);
          }
        };
        helper.onEnd = () => reject(new Error(helper.why()));
        if (helper.hasEnded) helper.onEnd();
        else child.send({ port, messages }, () => {});
      });
    } finally {
      child.channel?.unref();
    }
  }

  #accept({ pid = 0 }: ChildProcess, answer: HelperAnswer, server: unknown): MadeNamespace {
    if (!(server instanceof Server)) throw new Error(answer.why ?? "no socket was handed over");
    try {
      server.unref();
      return { server, ...this.#hold(pid) };
    } catch (error) {
      server.close();
      throw error;
    }
  }

  /** The helper stays in the namespace until it is asked for the next one. */
  #hold(pid: number): Omit<MadeNamespace, "server"> {
    const path = `/proc/${pid}/ns`;
    if (readlinkSync(`${path}/net`) === readlinkSync("/proc/self/ns/net"))
      throw new Error("the helper is in the daemon's own network");
    const namespace = openSync(`${path}/net`, "r");
    if (this.parts.prefix.length === 0) return { namespace };
    try {
      return { namespace, userNamespace: openSync(`${path}/user`, "r") };
    } catch (error) {
      closeSync(namespace);
      throw error;
    }
  }
}
