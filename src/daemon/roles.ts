import type { Config } from "../config/config.js";
import { allRole } from "./all.js";
import type { Role } from "./boot.js";
import { controlRole } from "./control/control.js";
import { nodeRole } from "./node/node.js";

/** The wiring page of each role. */
export const roles: Readonly<Record<Config["role"], Role>> = {
  all: allRole,
  control: controlRole,
  node: nodeRole,
};
