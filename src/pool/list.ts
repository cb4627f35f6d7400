import { type BrowserId, homeOf, type ProfileId } from "../base/ids.js";
import { type Browser, factsOf } from "./browser.js";
import type { Configs } from "./configs.js";
import type { Page, Paging, PoolListQuery, SessionListQuery, SessionOrTombstone } from "./operations.js";
import type { Pool } from "./pool.js";
import type { Homes, Projects } from "./ports.js";
import type { LoadedProfile, ProfileRefs } from "./profiles.js";
import type { Tombstone } from "./session.js";

interface PoolListPorts {
  readonly homes: Homes;
  readonly projects: Projects;
  readonly region: string;
}
interface Ports extends PoolListPorts {
  readonly configs: Configs;
  readonly profiles: ProfileRefs;
}

/** Without regard to case and accents (wire-facts.md 2.1). */
const folded = (text: string): string => text.normalize("NFD").replaceAll(/\p{M}/gu, "").toLowerCase();

export function pageOf<Item>(all: readonly Item[], { limit, offset }: Paging): Page<Item> {
  const items = all.slice(offset, offset + limit);
  return { items, hasMore: offset + limit < all.length, nextOffset: offset + items.length };
}

/** GET /browser_pools, newest first. */
export const makeListPools = ({ homes, projects, region }: PoolListPorts) => async (query: PoolListQuery): Promise<Page<Pool>> => {
  if (query.region !== undefined && query.region !== region) return pageOf<Pool>([], query);
  const all = await Promise.all((await projects.pools()).map((id) => homes.findPool(homeOf(id))));
  const pools = all.flatMap((pool) => pool ?? []).filter((pool) => isWanted(pool, query));
  return pageOf(pools.toSorted((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? -1 : 1)), query);
};

/** Whether a named thing is one that a list was asked for: `name` is all of its name, `query` a part of it or the id. */
export function isWanted(thing: { readonly id: string; readonly name?: string }, { name, query }: Pick<PoolListQuery, "name" | "query">): boolean {
  const ownName = folded(thing.name ?? "");
  if (name !== undefined && ownName !== folded(name)) return false;
  return query === undefined || thing.id === query || ownName.includes(folded(query));
}

/** GET /browsers: leased browsers and, where asked for, what is kept of those that are over; newest first. */
export const makeListSessions = (ports: Ports) => async (query: SessionListQuery): Promise<Page<SessionOrTombstone>> => {
  if (query.region !== undefined && query.region !== ports.region) return pageOf<SessionOrTombstone>([], query);
  const live = query.status === "deleted" ? [] : await liveBrowsers(ports);
  const over = query.status === "active" ? [] : await ports.projects.tombstones();
  const profiles = query.query === undefined ? [] : [...live.map(({ browser }) => profileIdOf(browser)), ...over.map(({ profileId }) => profileId)];
  const named = await namesOf(ports, profiles);
  const rows = [
    ...live.filter(({ browser }) => matches(factsOfLive(browser, named), query)).map((row) => ({ at: row.browser.createdAt, row })),
    ...over.filter((tombstone) => matches(factsOfDead(tombstone, named), query)).map((tombstone) => ({ at: tombstone.createdAt, row: tombstone })),
  ];
  const page = pageOf(rows.toSorted((one, other) => other.at - one.at || (idOf(one.row) < idOf(other.row) ? -1 : 1)), query);
  return { ...page, items: (await Promise.all(page.items.map(({ row }) => viewOf(ports, row)))).flatMap((view) => view ?? []) };
};

type Row = { browser: Browser; at: number } | Tombstone;
const idOf = (row: Row): BrowserId => ("browser" in row ? row.browser.id : row.id);

async function viewOf(ports: Ports, row: Row): Promise<SessionOrTombstone | undefined> {
  if (!("browser" in row)) return { kind: "deleted", tombstone: row };
  const session = await ports.configs.findSession(row.browser, row.at);
  return session && { kind: "session", session };
}

/** Of a lease: of the profile a PATCH has attached, else of what its browser was launched from. */
const profileIdOf = (browser: Browser): ProfileId | undefined =>
  browser.lease?.profile === undefined ? factsOf(browser).profileId : (JSON.parse(browser.lease.profile) as LoadedProfile).id;

type Names = ReadonlyMap<ProfileId, string>;

/** What the profiles are called now, each looked up once. */
async function namesOf({ profiles }: Ports, ids: readonly (ProfileId | undefined)[]): Promise<Names> {
  const found = await Promise.all([...new Set(ids)].map((id) => id && profiles.find(id)));
  return new Map(found.flatMap((profile) => (profile?.name === undefined ? [] : [[profile.id, profile.name] as const])));
}

async function liveBrowsers({ homes, projects }: Ports): Promise<readonly { browser: Browser; at: number }[]> {
  const all = await Promise.all((await projects.homes()).map((home) => homes.browsers(home)));
  return all.flatMap(({ browsers, at }) => browsers.filter((browser) => browser.lease).map((browser) => ({ browser, at })));
}

interface Searchable {
  readonly id: string;
  readonly name?: string | undefined;
  readonly pool?: string | undefined;
  readonly poolId?: string | undefined;
  readonly profile?: string | undefined;
  readonly profileId?: string | undefined;
  readonly tags?: string | undefined;
}
function factsOfLive(browser: Browser, names: Names): Searchable {
  const { id, lease } = browser;
  const profileId = profileIdOf(browser);
  const profile = profileId && names.get(profileId);
  return { id, name: lease?.name, tags: lease?.tags, pool: lease?.pool, poolId: factsOf(browser).poolId, profileId, profile };
}
const factsOfDead = ({ id, name, tags, pool, profileId }: Tombstone, names: Names): Searchable => ({
  id, name, tags, pool: pool?.name, poolId: pool?.id, profileId, profile: profileId && names.get(profileId),
});

function matches(row: Searchable, { query, tags }: SessionListQuery): boolean {
  const own = JSON.parse(row.tags ?? "{}") as Record<string, string>;
  if (Object.entries(tags ?? {}).some(([key, value]) => own[key] !== value)) return false;
  if (query === undefined || [row.id, row.poolId, row.profileId].includes(query)) return true;
  return [row.name, row.pool, row.profile].some((text) => text !== undefined && folded(text).includes(folded(query)));
}
