import {
  type BrowserId,
  findProxyId,
  type Partition,
  partitionOf,
  type ProfileId,
  type ProxyId,
} from "../base/ids.js";
import { groupBy } from "../base/group-by.js";
import { launchFactsOf, type LeasedBrowser } from "../pool/browser.js";
import type { SessionReader } from "../pool/launch-templates.js";
import { folded, type Page, type SessionListQuery } from "../spec/paging.js";
import type { SessionOrTombstone } from "../pool/operations.js";
import type { ListedSession } from "../pool/ports/partition-overview.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { ProjectStore } from "../pool/ports/project-store.js";
import type { ProfileRefs } from "../registry/profiles/selectors.js";
import { loadedProfileParser } from "../pool/session-profile.js";
import { guardedBy, tagsParser, type Tombstone } from "../pool/session.js";

interface RowPorts {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly sessionReader: SessionReader;
  readonly profiles: ProfileRefs;
  readonly region: string;
}

type ListRow = { readonly browser: LeasedBrowser; readonly at: number } | Tombstone;

/** Rows in the order of the list, read as far as somebody asks for them. */
interface RowSource {
  /** Passes over that many; gives how many there were. */
  skip(count: number): Promise<number>;
  /** The next of them, at most `count`; none at the end. */
  next(count: number): Promise<readonly ListRow[]>;
}

/** A search reads what it searches, in pieces that keep nobody waiting. */
const searchedAtOnce = 200;
const skippedAtOnce = 1000;

/**
 * GET /browsers: leased browsers, the youngest first; then, where asked for, what is kept of those that are
 * over, the last ended first.
 */
export const makeListSessions =
  (ports: RowPorts) =>
  async (query: SessionListQuery): Promise<Page<SessionOrTombstone>> => {
    const { limit, offset } = query;
    if (query.region !== undefined && query.region !== ports.region)
      return { items: [], hasMore: false, nextOffset: offset };
    const rows = await rowsOf(await sourcesOf(ports, query), query, makeMatches(ports, query));
    const page = rows.slice(0, limit);
    const views = await Promise.all(page.map((row) => viewOf(ports, row)));
    return {
      items: views.flatMap((view) => view ?? []),
      hasMore: rows.length > limit,
      nextOffset: offset + page.length,
    };
  };

async function sourcesOf(ports: RowPorts, { status }: SessionListQuery): Promise<readonly RowSource[]> {
  const live = status === "deleted" ? [] : [new LiveRows(ports.poolStore, await ports.projects.partitions())];
  return status === "active" ? live : [...live, new OverRows(ports.projects)];
}

type Matches = ((rows: readonly ListRow[]) => Promise<readonly ListRow[]>) | undefined;

/** The rows of the page and one more, which tells that there are more. */
async function rowsOf(
  sources: readonly RowSource[],
  { limit, offset }: SessionListQuery,
  matches: Matches,
): Promise<readonly ListRow[]> {
  const found: ListRow[] = [];
  let left = offset;
  for (const source of sources) {
    if (!matches) left -= await source.skip(left);
    for (let isOver = false; !isOver && found.length <= limit;) {
      const read = await source.next(matches ? searchedAtOnce : limit + 1 - found.length);
      const wanted = matches ? await matches(read) : read;
      found.push(...wanted.slice(left));
      left = Math.max(0, left - wanted.length);
      isOver = read.length === 0;
    }
  }
  return found.slice(0, limit + 1);
}

interface Stream {
  readonly partition: Partition;
  readonly heads: ListedSession[];
  from: number;
  isOver: boolean;
}

const isBefore = (one: ListedSession, other: ListedSession): boolean =>
  one.createdAt > other.createdAt || (one.createdAt === other.createdAt && one.id > other.id);

/**
 * The leased browsers of all partitions: of each only its first few, and their ids only, until it is known
 * which come first.
 */
class LiveRows implements RowSource {
  readonly #streams: readonly Stream[];
  readonly #seen = new Set<BrowserId>();

  constructor(
    private readonly poolStore: PoolStore,
    all: readonly Partition[],
  ) {
    this.#streams = all.map((partition) => ({ partition, heads: [], from: 0, isOver: false }));
  }

  async skip(count: number): Promise<number> {
    return (await this.#take(count)).length;
  }

  async next(count: number): Promise<readonly ListRow[]> {
    const ids = await this.#take(count);
    const read = await Promise.all(
      [...groupBy(ids, partitionOf)].map(async ([partition, own]) => {
        const { browsers, at } = await this.poolStore.records(partition, own);
        return browsers.flatMap((browser) =>
          browser.state === "leased" ? [[browser.id, { browser, at }] as const] : [],
        );
      }),
    );
    const rows = new Map(read.flat());
    const live = ids.flatMap((id) => rows.get(id) ?? []);
    // All of these sessions have ended meanwhile, but the list goes on.
    return ids.length > 0 && live.length === 0 ? await this.next(count) : live;
  }

  async #take(count: number): Promise<readonly BrowserId[]> {
    const taken: BrowserId[] = [];
    while (taken.length < count) {
      await this.#refill();
      const id = this.#first()?.heads.shift()?.id;
      if (id === undefined) break;
      // A session that was granted meanwhile moves the others on by a place.
      if (!this.#seen.has(id)) taken.push(id);
      this.#seen.add(id);
    }
    return taken;
  }

  #first(): Stream | undefined {
    let first: Stream | undefined;
    for (const stream of this.#streams) if (isAhead(stream, first)) first = stream;
    return first;
  }

  async #refill(): Promise<void> {
    const empty = this.#streams.filter(({ heads, isOver }) => heads.length === 0 && !isOver);
    await Promise.all(
      empty.map(async (stream) => {
        // Few at first: of most partitions hardly any is on the page.
        const count = Math.min(skippedAtOnce, Math.max(8, stream.from));
        const read = await this.poolStore.leased(stream.partition, stream.from, count);
        stream.heads.push(...read);
        stream.from += read.length;
        stream.isOver = read.length < count;
      }),
    );
  }
}

function isAhead({ heads: [one] }: Stream, first: Stream | undefined): boolean {
  const other = first?.heads[0];
  return one !== undefined && (other === undefined || isBefore(one, other));
}

class OverRows implements RowSource {
  #from = 0;

  constructor(private readonly projects: ProjectStore) {}

  async skip(count: number): Promise<number> {
    const skipped = Math.min(count, await this.projects.countTombstones());
    this.#from += skipped;
    return skipped;
  }

  async next(count: number): Promise<readonly ListRow[]> {
    const read = await this.projects.tombstones(this.#from, count);
    this.#from += count;
    return read;
  }
}

async function viewOf({ sessionReader }: RowPorts, row: ListRow): Promise<SessionOrTombstone | undefined> {
  if (!("browser" in row)) return { kind: "deleted", tombstone: row };
  const session = await sessionReader.findSession(row.browser, row.at);
  return session && { kind: "session", session };
}

function makeMatches(ports: RowPorts, query: SessionListQuery): Matches {
  const found = makeFinds(ports, query);
  const { sees } = query;
  if (sees === undefined) return found;
  return async (rows) => {
    const seen = await Promise.all(rows.map((row) => isSeen(ports, row, sees)));
    const left = rows.filter((_, at) => seen[at]);
    return found ? await found(left) : left;
  };
}

/** Judges a session by the profile and the vaults it has now, as a read of it does. */
async function isSeen(
  { sessionReader }: RowPorts,
  row: ListRow,
  sees: NonNullable<SessionListQuery["sees"]>,
): Promise<boolean> {
  if (!("browser" in row)) return sees(guardedBy(row));
  const session = await sessionReader.findSession(row.browser, row.at);
  if (session === undefined) return false;
  const { profile, launch } = session;
  return sees({ id: row.browser.id, ...(profile && { profile }), vaults: launch.vault_ids ?? [] });
}

/** An empty search finds all, as in the other lists. */
function makeFinds(ports: RowPorts, query: SessionListQuery): Matches {
  const wanted = query.query === "" ? undefined : query.query;
  if (wanted === undefined && Object.keys(query.tags ?? {}).length === 0) return undefined;
  const names = new Map<ProfileId, string | undefined>();
  const proxy = wanted === undefined ? undefined : findProxyId(wanted);
  return async (rows) => {
    const tagged = rows.filter((row) => hasTags(row, query));
    if (wanted === undefined) return tagged;
    const unknown = tagged.flatMap((row) => profileIdOf(row) ?? []).filter((id) => !names.has(id));
    await Promise.all(
      [...new Set(unknown)].map(async (id) => void names.set(id, (await ports.profiles.find(id))?.name)),
    );
    const found = await Promise.all(
      tagged.map(
        async (row) => isFound(searchable(row), wanted, names) || (await usesProxy(ports, row, proxy)),
      ),
    );
    return tagged.filter((_, at) => found[at]);
  };
}

/** Goes by the proxy that is in force: a pool's or a session's may change while its browsers run. */
async function usesProxy(
  { sessionReader }: RowPorts,
  row: ListRow,
  proxy: ProxyId | undefined,
): Promise<boolean> {
  if (proxy === undefined || !("browser" in row)) return false;
  return (await sessionReader.findSession(row.browser, row.at))?.launch.proxy_id === proxy;
}

function hasTags(row: ListRow, { tags }: SessionListQuery): boolean {
  const text = "browser" in row ? row.browser.lease.tags : row.tags;
  const own = text === undefined ? {} : tagsParser.json(text);
  return Object.entries(tags ?? {}).every(([key, value]) => own[key] === value);
}

/** The profile that a PATCH has attached to the lease, else the one its browser was launched from. */
function profileIdOf(row: ListRow): ProfileId | undefined {
  if (!("browser" in row)) return row.profileId;
  const { lease } = row.browser;
  return lease.profile === undefined
    ? launchFactsOf(row.browser).profileId
    : loadedProfileParser.json(lease.profile).id;
}

interface Searchable {
  readonly id: string;
  readonly name?: string | undefined;
  readonly pool?: string | undefined;
  readonly poolId?: string | undefined;
  readonly profileId?: ProfileId | undefined;
}

function searchable(row: ListRow): Searchable {
  const profileId = profileIdOf(row);
  if (!("browser" in row))
    return { id: row.id, name: row.name, pool: row.pool?.name, poolId: row.pool?.id, profileId };
  const { id, lease } = row.browser;
  return { id, name: lease.name, pool: lease.pool, poolId: launchFactsOf(row.browser).poolId, profileId };
}

function isFound(
  row: Searchable,
  query: string,
  profiles: ReadonlyMap<ProfileId, string | undefined>,
): boolean {
  if ([row.id, row.poolId, row.profileId].includes(query)) return true;
  const profile = row.profileId && profiles.get(row.profileId);
  return [row.name, row.pool, profile].some(
    (text) => text !== undefined && folded(text).includes(folded(query)),
  );
}
