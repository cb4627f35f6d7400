import { Readable } from "node:stream";
import { type Done, done, type Refusal } from "../../../src/base/errors.js";
import type { ProjectOperations } from "../../../src/access/project.js";
import type { ApiKeyOperations, IssuedKey } from "../../../src/access/api-key.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import type {
  ApiKeyId,
  BrowserId,
  Digest,
  ExtensionId,
  LeaseId,
  NodeId,
  PoolId,
  ProfileId,
  ProxyId,
} from "../../../src/base/ids.js";
import type { PoolSpec } from "../../../src/spec/launch-template.js";
import type { Granted, PoolOperations, SessionOperations } from "../../../src/pool/operations.js";
import type { Pool } from "../../../src/pool/pool.js";
import type { Session, Tombstone } from "../../../src/pool/session.js";
import type { Extension, ExtensionOperations } from "../../../src/registry/extensions/extension.js";
import type { Profile, ProfileOperations } from "../../../src/registry/profiles/profile.js";
import type { Proxy, ProxyOperations } from "../../../src/registry/proxies/proxy.js";
import { recordedAudit, recordedDestinations } from "./recorded-audit.js";
import { recordedNodes } from "./recorded-nodes.js";
import { project, projectLimits } from "./recorded-project.js";
import { recordedVaultItems, recordedVaults } from "./recorded-vaults.js";
import { recordedEvents, recordedOtlpDestinations, recording } from "./recorded-telemetry.js";

export const poolSpec: PoolSpec = {
  size: 2,
  fill_rate_per_minute: 25,
  timeout_seconds: 600,
  reset_on_release: "none",
  name: "herd",
  headless: true,
  stealth: false,
  kiosk_mode: false,
  engine: "chromium",
  memory: "1GiB",
  viewport: { width: 1920, height: 1080, refresh_rate: 25 },
};
export const pool: Pool = {
  id: "poolpoolpoolpoolpoolpool" as PoolId,
  name: "herd",
  createdAt: 1_700_000_000_000,
  revision: 1,
  generation: 3,
  networkGeneration: 1,
  spec: poolSpec,
  counts: { launching: 1, idle: 2, leased: 3, resetting: 4, stale: 5, waiting: 6 },
};
export const session: Session = {
  browser: {
    id: "poolpoolpoolbrowser00001" as BrowserId,
    state: "leased",
    since: 1_700_000_001_000,
    createdAt: 1_700_000_000_500,
    node: "node-1" as NodeId,
    templateKey: "c1",
    facts: "{}",
    generation: 3,
    networkGeneration: 1,
    served: 7,
    isolation: '{"uid":20001,"network":"proxy","attested":"2023-11-14T22:13:20.900Z"}',
    lease: {
      id: "leaseleaseleaselease0001" as LeaseId,
      grantedAt: 1_700_000_001_000,
      timeoutSeconds: 600,
      tags: '{"team":"a"}',
      name: "mine",
      registrations: 0,
      usage: { requests: 3, denied: 1, bytesSent: 40, bytesReceived: 500 },
    },
  },
  launch: poolSpec,
  pool: { id: pool.id, name: "herd" },
  at: 1_700_000_002_500,
};
export const tombstone: Tombstone = {
  id: "poolpoolpoolbrowser00002" as BrowserId,
  lease: "leaseleaseleaselease0002" as LeaseId,
  createdAt: 1_700_000_000_000,
  deletedAt: 1_700_000_009_000,
  reason: "expired",
  headless: true,
  stealth: false,
  kiosk_mode: false,
  memory: "1GiB",
  timeoutSeconds: 60,
  tags: '{"team":"b"}',
};

export const proxy: Proxy = {
  id: "proxyproxyproxyproxy0001" as ProxyId,
  name: "out",
  protocol: "https",
  host: "proxy.example",
  port: 8443,
  username: "me",
  hasPassword: true,
  hasCaBundle: false,
  bypassHosts: ["*.intern.example"],
  checked: { status: "available", ipAddress: "203.0.113.7", at: 1_700_000_001_000 },
};

export const profile: Profile = {
  id: "profprofprofprofprof0001" as ProfileId,
  name: "me",
  createdAt: 1_700_000_000_000,
  updatedAt: 1_700_000_001_000,
  lastUsedAt: 1_700_000_002_000,
  archive: { digest: "ab".repeat(32) as Digest, sizeBytes: 7, savedAt: 1_700_000_001_000 },
};

export const extension: Extension = {
  id: "extensionextension000001" as ExtensionId,
  name: "ads",
  digest: "0".repeat(64) as Digest,
  sizeBytes: 7,
  createdAt: 1_700_000_000_000,
  lastUsedAt: 1_700_000_001_000,
};

export const issuedKey: IssuedKey = {
  key: {
    id: "keykeykeykeykeykeykey001" as ApiKeyId,
    name: "build",
    digest: "not to be shown",
    mask: "rmd_...wxyz",
    createdAt: 1_700_000_000_000,
    createdBy: { id: "root", email: "root@remuda.invalid", name: null },
  },
  projectName: null,
  text: new Secret("rmd_the_text_of_a_key"),
};

type Answer = Done<never> | Refusal | object | Error;
const onlyOne = { hasMore: false, nextOffset: 1 };
export interface Call {
  readonly operation: string;
  readonly args: readonly unknown[];
}
/**
 * Stands behind the HTTP border for its tests: says what it was called with, answers one fixed pool and
 * session, or what `answer` set for an operation (a function is called with the operation's arguments).
 */
export class RecordedOperations {
  readonly calls: Call[] = [];
  readonly settled: string[] = [];
  readonly received: { readonly name: string; readonly digest: string }[][] = [];
  readonly #answers = new Map<string, Answer | ((...args: never[]) => unknown)>();
  answer(operation: string, answer: Answer | ((...args: never[]) => unknown)): void {
    this.#answers.set(operation, answer);
  }
  reset(): void {
    this.calls.length = 0;
    this.settled.length = 0;
    this.received.length = 0;
    this.#answers.clear();
  }
  granted(): Granted {
    return { kind: "granted", session, settle: (outcome) => this.settled.push(outcome) };
  }
  readonly apiKeys: ApiKeyOperations = {
    create: (...args) => this.#run("apiKeys.create", args, done(issuedKey)),
    list: (...args) => this.#run("apiKeys.list", args, done({ ...onlyOne, items: [issuedKey] })),
    get: (...args) => this.#run("apiKeys.get", args, done(issuedKey)),
    rename: (...args) => this.#run("apiKeys.rename", args, done(issuedKey)),
    remove: (...args) => this.#run("apiKeys.remove", args, done(null)),
    rotate: (...args) => this.#run("apiKeys.rotate", args, done(issuedKey)),
  };

  readonly projects: ProjectOperations = {
    create: (...args) => this.#run("projects.create", args, done(project)),
    list: (...args) => this.#run("projects.list", args, { ...onlyOne, items: [project] }),
    get: (...args) => this.#run("projects.get", args, done(project)),
    update: (...args) => this.#run("projects.update", args, done(project)),
    remove: (...args) => this.#run("projects.remove", args, done(null)),
    limits: (...args) => this.#run("projects.limits", args, done(projectLimits)),
    updateLimits: (...args) => this.#run("projects.updateLimits", args, done(projectLimits)),
  };

  readonly pools: PoolOperations = {
    recordings: (...args) => this.#run("pools.recordings", args, done([recording])),
    create: (...args) => this.#run("pools.create", args, done(pool)),
    list: (...args) => this.#run("pools.list", args, { items: [pool], hasMore: false, nextOffset: 1 }),
    get: (...args) => this.#run("pools.get", args, done(pool)),
    update: (...args) => this.#run("pools.update", args, done(pool)),
    remove: (...args) => this.#run("pools.remove", args, done(null)),
    acquire: (...args) => this.#run("pools.acquire", args, this.granted()),
    release: (...args) => this.#run("pools.release", args, done(null)),
    flush: (...args) => this.#run("pools.flush", args, done(null)),
    browsers: (...args) =>
      this.#run(
        "pools.browsers",
        args,
        done([
          {
            id: session.browser.id,
            state: "idle",
            node: "node-1" as NodeId,
            generation: 3,
            stale: false,
            ageMs: 12.4,
            served: 2,
            lastError: "slow",
          },
        ]),
      ),
  };

  readonly sessions: SessionOperations = {
    recording: (...args) => this.#run("sessions.recording", args, done(recording)),
    create: (...args) => this.#run("sessions.create", args, this.granted()),
    list: (...args) =>
      this.#run("sessions.list", args, {
        items: [
          { kind: "session", session },
          { kind: "deleted", tombstone },
        ],
        hasMore: true,
        nextOffset: 2,
      }),
    get: (...args) => this.#run("sessions.get", args, done({ kind: "session", session })),
    update: (...args) => this.#run("sessions.update", args, done(session)),
    remove: (...args) => this.#run("sessions.remove", args, done(null)),
    reportCaptcha: (...args) => this.#run("sessions.reportCaptcha", args, done(null)),
    findUploadTarget: (...args) => this.#run("sessions.findUploadTarget", args, done(session)),
    addExtensions: (...args) => {
      this.received.push(args[1].map(({ name, digest }) => ({ name, digest })));
      return this.#run("sessions.addExtensions", args, done(null));
    },
    curl: (...args) =>
      this.#run(
        "sessions.curl",
        args,
        done(
          Readable.from([
            `{"status":200,"headers":{"set-cookie":["a=1","b=2"]},`,
            `"body":"hello","duration_ms":12}`,
          ]),
        ),
      ),
  };

  readonly proxies: ProxyOperations = {
    create: (...args) => this.#run("proxies.create", args, done(proxy)),
    list: (...args) => this.#run("proxies.list", args, { items: [proxy], hasMore: false, nextOffset: 1 }),
    get: (...args) => this.#run("proxies.get", args, done(proxy)),
    rename: (...args) => this.#run("proxies.rename", args, done(proxy)),
    remove: (...args) => this.#run("proxies.remove", args, done(null)),
    check: (...args) => this.#run("proxies.check", args, done(proxy)),
  };

  readonly extensions: ExtensionOperations = {
    create: (...args) => this.#run("extensions.create", args, done(extension)),
    list: (...args) =>
      this.#run("extensions.list", args, { items: [extension], hasMore: false, nextOffset: 1 }),
    get: (...args) => this.#run("extensions.get", args, done(extension)),
    download: (...args) =>
      this.#run(
        "extensions.download",
        args,
        done({ extension, bytes: Readable.from([Buffer.from("archive")]) }),
      ),
    remove: (...args) => this.#run("extensions.remove", args, done(null)),
    fromStore: (...args) => {
      const bytes = Readable.from([Buffer.from("archive")]);
      return this.#run("extensions.fromStore", args, done({ sizeBytes: 7, bytes }));
    },
  };

  readonly profiles: ProfileOperations = {
    create: (...args) => this.#run("profiles.create", args, done(profile)),
    list: (...args) => this.#run("profiles.list", args, { items: [profile], hasMore: false, nextOffset: 1 }),
    get: (...args) => this.#run("profiles.get", args, done(profile)),
    rename: (...args) => this.#run("profiles.rename", args, done(profile)),
    remove: (...args) => this.#run("profiles.remove", args, done(null)),
    download: (...args) =>
      this.#run("profiles.download", args, done({ bytes: Readable.from([Buffer.from("archive")]) })),
  };
  readonly #bound = this.#run.bind(this);
  readonly nodes = recordedNodes(this.#bound);
  readonly auditLog = recordedAudit(this.#bound);
  readonly destinations = recordedDestinations(this.#bound);
  readonly events = recordedEvents(this.#bound);
  readonly otlpDestinations = recordedOtlpDestinations(this.#bound);
  readonly vaults = recordedVaults(this.#bound);
  readonly vaultItems = recordedVaultItems(this.#bound);

  async #run<Result>(operation: string, args: readonly unknown[], usual: Result): Promise<Result> {
    this.calls.push({ operation, args });
    const answer = this.#answers.get(operation) ?? usual;
    if (answer instanceof Error) throw answer;
    return (await (typeof answer === "function"
      ? (answer as (...args: unknown[]) => unknown)(...args)
      : answer)) as Result;
  }
}
