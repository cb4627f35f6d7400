import { type Static, Type } from "typebox";
import { regions } from "../spec/bodies.js";
import { oneOf, secretOr, textOr } from "./kinds.js";
import { accessSection, projectsSection } from "./sections/access.js";
import { auditSection } from "./sections/audit.js";
import { archivesSection, extensionsSection, profilesSection } from "./sections/archives.js";
import { nodeSection, browserSection, drainSection } from "./sections/browsers.js";
import { serverSection, redisSection, logSection, stopSection, operatorSection } from "./sections/daemon.js";
import { gatewaySection, egressSection } from "./sections/network.js";
import { telemetrySection } from "./sections/telemetry.js";
import { vaultSection } from "./sections/vault.js";
import {
  fillSection,
  acquireSection,
  recycleSection,
  periodsSection,
  tombstonesSection,
  limitsSection,
} from "./sections/pools.js";

const roleNames = ["all", "control", "node", "operator"] as const;
const key = { pattern: "^[!-~]{16,}$", form: "at least 16 printable characters without spaces" } as const;

/** The whole configuration as the file states it: snake_case, the unit at the end of the key. */
export const ConfigFile = Type.Object({
  role: oneOf(
    "all: everything in one process; control: API and schedules; node: browsers; operator: pools from resources of Kubernetes",
    roleNames,
  )("all", { env: "REMUDA_ROLE" }),
  region: oneOf("region of this deployment; sessions for others are refused", regions)("us-east", {
    env: "REMUDA_REGION",
  }),
  data_dir: textOr("keys, the private Redis and what else outlives the process")(
    ".remuda beside package.json",
    { env: "REMUDA_DATA_DIR" },
  ),
  api_key: secretOr("the root API key")("drawn once, kept in the data directory", {
    env: "REMUDA_API_KEY",
    ...key,
  }),
  cluster_secret: secretOr("signs the URLs of browsers; the same for all daemons of a deployment")(
    "drawn once, kept in the data directory",
    { env: "REMUDA_CLUSTER_SECRET", ...key },
  ),
  encryption_key: secretOr(
    "seals what is kept encrypted, such as passwords of proxies; random, and the same for all daemons of a deployment",
  )("drawn once, kept in the data directory", { env: "REMUDA_ENCRYPTION_KEY", ...key }),
  access: accessSection,
  projects: projectsSection,
  server: serverSection,
  redis: redisSection,
  node: nodeSection,
  browser: browserSection,
  fill: fillSection,
  acquire: acquireSection,
  recycle: recycleSection,
  drain: drainSection,
  gateway: gatewaySection,
  egress: egressSection,
  archives: archivesSection,
  audit: auditSection,
  telemetry: telemetrySection,
  extensions: extensionsSection,
  profiles: profilesSection,
  vault: vaultSection,
  operator: operatorSection,
  periods: periodsSection,
  tombstones: tombstonesSection,
  limits: limitsSection,
  stop: stopSection,
  log: logSection,
  pools: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
    description: "pools to create when absent: bodies of POST /browser_pools",
    default: [],
  }),
  standby: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
    description:
      "browsers that stand by for POST /browsers (docs/deployment.md#standby): how many (`count`), of which " +
      "project (`project`, an id; else the default one), and what of the body decides how they are launched",
    default: [],
  }),
});
export type ConfigFile = Static<typeof ConfigFile>;
