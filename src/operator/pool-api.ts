import { Type } from "typebox";
import { abortWith } from "../base/deadline.js";
import type { Clock, Millis } from "../base/clock.js";
import type { Secret } from "../base/crypto/secret.js";
import { readAnswer } from "../base/net/read-answer.js";
import { parserOf } from "../base/parser.js";

/** A pool as the API tells of it, with what the operator needs. */
export interface RemotePool {
  readonly id: string;
  /** One that was not made by an operator may have none. */
  readonly name?: string;
  readonly size: number;
  readonly idle: number;
  readonly leased: number;
  readonly launching: number;
  readonly waiting: number;
  /** All that count towards its size. */
  readonly existing: number;
  /** All that the API shows of it. */
  readonly configuration: Readonly<Record<string, unknown>>;
  readonly fill?: { readonly reason: string; readonly lastError?: string };
}

/** What is lent on one node. */
export interface NodeLeases {
  readonly leased: number;
  /** Its drain may not see the end of some of it. */
  readonly outlastsDrain: boolean;
}

/** The API's own word and sentence for a refusal. */
export class ApiRefusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "ApiRefusal";
  }
  /** What is asked for is refused: it fails for as long as the resource, a limit, or the key is as it is. */
  get isOfRequest(): boolean {
    return [400, 403, 409, 422].includes(this.status);
  }
}

/** It did not answer in time, or not as the API does. */
export class ApiUnavailable extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : "the API could not be asked", { cause });
    this.name = "ApiUnavailable";
  }
}

/** A pool's policy is the longest part of any answer, and has 5 MiB at most. */
const maxAnswerBytes = 16 * 2 ** 20;

const Count = Type.Integer();
const poolParser = parserOf(
  "a pool as the API tells of it",
  Type.Object({
    id: Type.String(),
    name: Type.Optional(Type.String()),
    acquired_count: Count,
    available_count: Count,
    launching_count: Count,
    resetting_count: Count,
    waiting_count: Count,
    fill: Type.Optional(Type.Object({ reason: Type.String(), last_error: Type.Optional(Type.String()) })),
    browser_pool_config: Type.Object({ size: Count }),
  }),
);
const refusalParser = parserOf(
  "a refusal of the API",
  Type.Object({ code: Type.String(), message: Type.String() }),
);
const scalingParser = parserOf(
  "what the API tells of nodes",
  Type.Object({
    by_node: Type.Array(
      // Controls of an earlier release do not tell the last.
      Type.Object({ id: Type.String(), leased: Count, outlasts_drain: Type.Optional(Type.Boolean()) }),
    ),
  }),
);

function remotePool({ text }: ApiReply): RemotePool {
  const pool = read(poolParser, text);
  const { acquired_count: leased, available_count: idle, launching_count: launching, fill } = pool;
  return {
    id: pool.id,
    ...(pool.name !== undefined && { name: pool.name }),
    size: pool.browser_pool_config.size,
    idle,
    leased,
    launching,
    waiting: pool.waiting_count,
    existing: idle + leased + pool.resetting_count,
    configuration: pool.browser_pool_config,
    ...(fill && {
      fill: { reason: fill.reason, ...(fill.last_error !== undefined && { lastError: fill.last_error }) },
    }),
  };
}

interface ApiOptions {
  readonly url: string;
  readonly key: Secret;
  readonly clock: Clock;
  readonly limitMs: Millis;
  readonly stopping: AbortSignal;
}

interface Request {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: object;
  /** A repeat gets the first answer. */
  readonly key?: string;
}

interface ApiReply {
  readonly status: number;
  readonly text: string;
}

/**
 * Remuda's own API, as the operator uses it: whatever a resource asks for goes through the checks of every
 * caller.
 */
export class PoolApi {
  constructor(private readonly options: ApiOptions) {}

  /** `pool`: its name or its id. */
  async find(pool: string): Promise<RemotePool | undefined> {
    return await ifThere(this.#ask({ method: "GET", path: pathOf(pool) }, remotePool));
  }

  /** Many operators that create the same pool get the same one, by the resource's own id as the key. */
  async create(body: { name: string; size: number }, key: string): Promise<RemotePool> {
    return await this.#ask({ method: "POST", path: "/browser_pools", body, key }, remotePool);
  }

  async update(pool: string, body: object): Promise<RemotePool | undefined> {
    return await ifThere(this.#ask({ method: "PATCH", path: pathOf(pool), body }, remotePool));
  }

  /** One that is not there is deleted. */
  async remove(pool: string, isForced: boolean): Promise<void> {
    const request: Request = { method: "DELETE", path: pathOf(pool), body: { force: isForced } };
    await ifThere(this.#ask(request, removed));
  }

  async leasesByNode(): Promise<ReadonlyMap<string, NodeLeases>> {
    return await this.#ask({ method: "GET", path: "/scaling" }, leasesByNode);
  }

  async #ask<Told>(request: Request, told: (answer: ApiReply) => Told): Promise<Told> {
    const { clock, limitMs, stopping } = this.options;
    const late = new AbortController();
    const cancel = clock.after(limitMs, () =>
      late.abort(new Error(`the API did not answer in ${limitMs} ms`)),
    );
    const unfollow = abortWith(late, [stopping]);
    try {
      return told(await this.#send(request, late.signal));
    } catch (error) {
      throw error instanceof ApiRefusal ? error : new ApiUnavailable(error);
    } finally {
      cancel();
      unfollow();
    }
  }

  async #send({ method, path, body, key }: Request, signal: AbortSignal): Promise<ApiReply> {
    const response = await fetch(new URL(path, this.options.url), {
      method,
      redirect: "error",
      signal,
      headers: {
        authorization: `Bearer ${this.options.key.reveal()}`,
        ...(body && { "content-type": "application/json" }),
        ...(key !== undefined && { "idempotency-key": key }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await readAnswer(response, { mostBytes: maxAnswerBytes, signal });
    if (response.ok) return { status: response.status, text };
    throw refusalOf(response.status, text);
  }
}

const pathOf = (pool: string): string => `/browser_pools/${encodeURIComponent(pool)}`;

/** Undefined where the API itself says that there is no such pool: what stands before it may say 404, too. */
async function ifThere<Told>(asking: Promise<Told>): Promise<Told | undefined> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof ApiRefusal && error.code === "pool_not_found") return undefined;
    throw error;
  }
}

function removed({ status }: ApiReply): void {
  if (status !== 204) throw new Error(`the API answered ${status} to a deletion`);
}

function leasesByNode({ text }: ApiReply): ReadonlyMap<string, NodeLeases> {
  const { by_node: nodes } = read(scalingParser, text);
  return new Map(
    nodes.map(({ id, leased, outlasts_drain: outlastsDrain = false }) => [id, { leased, outlastsDrain }]),
  );
}

/** What stands before the API answers in words of its own, which an error of JSON's would repeat. */
function read<Value>(parser: { value(given: unknown): Value }, text: string): Value {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    throw new Error("the API answered something else than JSON");
  }
  return parser.value(given);
}

function refusalOf(status: number, text: string): Error {
  try {
    const { code, message } = refusalParser.json(text);
    return new ApiRefusal(status, code, message);
  } catch {
    return new Error(`the API answered ${status}`);
  }
}
