import type { Config } from "../config/config.js";
import { allRole } from "./all.js";
import { boot, type Role } from "./boot.js";
import { controlRole } from "./control/control.js";
import { nodeRole } from "./node/node.js";
import type { Start } from "./shutdown.js";

/** The wiring page of each role. */
const roles: Readonly<Record<Exclude<Config["role"], "operator">, Role>> = {
  all: allRole,
  control: controlRole,
  node: nodeRole,
};

/** An operator has no Redis and keeps nothing, so it is not booted as the others are. */
export const startOf =
  (config: Config): Start =>
  async (lifetime) => {
    if (config.role !== "operator") return await boot(roles[config.role], config, lifetime);
    // The client of Kubernetes has 57 MB, which no other role pays for.
    const { operatorRole } = await import("./operator.js");
    return await operatorRole(config, lifetime);
  };
