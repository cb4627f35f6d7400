import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { type Static, Type } from "typebox";
import { Compile } from "typebox/compile";
import { defaultProject, ProjectId } from "../../base/ids.js";
import { SessionCreate } from "../../spec/bodies.js";
import type { LaunchTemplate } from "../../spec/launch-template.js";
import { faultsOfForm } from "../declared-pools.js";
import { createSessionTemplate, type SpecDefaults } from "../merge-spec.js";

const { browser_policy, chrome_policy, engine, headless, kiosk_mode, memory, network, stealth, viewport } =
  SessionCreate.properties;

/**
 * An entry of the setting `standby`: what POST /browsers may ask for that decides how a browser is launched,
 * and how many are kept. What names something that is registered is left out, since that may change.
 */
const StandbyEntry = Type.Object(
  {
    count: Type.Integer({ minimum: 1, maximum: 100 }),
    project: Type.Optional(ProjectId),
    browser_policy,
    chrome_policy,
    engine,
    headless,
    kiosk_mode,
    memory,
    network,
    stealth,
    viewport,
  },
  { additionalProperties: false },
);
type StandbyEntry = Static<typeof StandbyEntry>;
const check = Compile(StandbyEntry);

/** A launch template of which so many browsers stand by for sessions on demand of a project. */
export interface StandbyShape {
  /** Names the template, in the records of its browsers. */
  readonly key: string;
  readonly project: ProjectId;
  readonly count: number;
  readonly template: LaunchTemplate;
}

interface StandbyBounds {
  readonly defaults: SpecDefaults;
  readonly hasProjects: boolean;
}

/** Finds the faults of the setting. */
export function standbyFaults(declared: readonly unknown[], bounds: StandbyBounds): readonly string[] {
  const faults = declared.flatMap((entry, index) =>
    faultsOfEntry(entry, bounds).map((fault) => `standby[${index}]${fault}`),
  );
  if (faults.length > 0) return faults;
  const shapes = standbyShapes(declared, bounds.defaults);
  const names = shapes.map(({ project, key }) => `${project} ${key}`);
  return names.flatMap((name, index) =>
    names.indexOf(name) === index ? [] : [`standby[${index}]: is that of standby[${names.indexOf(name)}]`],
  );
}

function faultsOfEntry(entry: unknown, { defaults, hasProjects }: StandbyBounds): readonly string[] {
  if (!check.Check(entry)) return faultsOfForm(check, entry);
  const template = templateOf(entry, defaults);
  return [
    ...(entry.network?.proxy_routes
      ? [".network.proxy_routes: proxies may change while browsers stand by"]
      : []),
    ...(entry.project !== undefined && entry.project !== defaultProject && !hasProjects
      ? [".project: needs projects.enabled"]
      : []),
    ...(template.kind === "refused" ? (template.details ?? []) : []).map(({ message }) => `.${message}`),
  ];
}

const templateOf = ({ count: _count, project: _project, ...body }: StandbyEntry, defaults: SpecDefaults) =>
  createSessionTemplate(body, defaults);

/** What the setting asks for; what is wrong with it was refused with the configuration. */
export const standbyShapes = (
  declared: readonly unknown[],
  defaults: SpecDefaults,
): readonly StandbyShape[] =>
  declared.flatMap((entry) => {
    if (!check.Check(entry)) return [];
    const template = templateOf(entry, defaults);
    if (template.kind === "refused") return [];
    const { count, project = defaultProject } = entry;
    return [{ key: keyOf(template.value), project, count, template: template.value }];
  });

const keyOf = (template: LaunchTemplate): string =>
  createHash("sha256").update(JSON.stringify(template)).digest("base64url");

/**
 * The shape whose browsers are as those that would be launched from the template. What a template says only
 * of the session is left out: its start page and telemetry, which begin with the lease as those of an acquire
 * do, and its vaults, of which a browser knows nothing.
 */
export function findShape(
  shapes: readonly StandbyShape[],
  template: LaunchTemplate,
): StandbyShape | undefined {
  if (shapes.length === 0) return undefined;
  const {
    start_url: _start,
    telemetry: _telemetry,
    vaults: _vaults,
    vault_ids: _ids,
    protect_filled: _protected,
    ...launch
  } = template;
  return shapes.find((shape) => isDeepStrictEqual(shape.template, launch));
}
