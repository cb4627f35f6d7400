interface EntitledTo {
  readonly concurrentSessions: number | null;
  readonly maxExtensions: number;
  readonly maxVaults: number;
}

const built = { enabled: true } as const;
const notBuilt = { enabled: false } as const;

export type Entitlements = ReturnType<typeof entitlementsOf>;

/**
 * What this deployment offers, in the words of GET /org/entitlements (docs/limits.md#operations): all that is
 * built, as much of it as is configured. Null: no limit.
 */
export const entitlementsOf = ({ concurrentSessions, maxExtensions, maxVaults }: EntitledTo) => ({
  plan: {
    id: "ENTERPRISE",
    effective_id: "ENTERPRISE",
    status: null,
    is_trialing: false,
    trial_ends_at: null,
  },
  limits: {
    max_concurrent_browsers: concurrentSessions,
    max_concurrent_invocations: 0,
    default_max_concurrent_invocations_per_app: 0,
    max_vaults: maxVaults,
  },
  features: {
    browser_extensions: { ...built, max_stored_per_org: maxExtensions },
    browser_pools: built,
    browser_replays: { ...notBuilt, retention_days: 0 },
    credential_providers: notBuilt,
    credentials: notBuilt,
    custom_proxies: built,
    file_io: notBuilt,
    gpu: notBuilt,
    managed_auth: {
      ...notBuilt,
      health_check_interval_default_seconds: 0,
      health_check_interval_max_seconds: 0,
      health_check_interval_min_seconds: 0,
      max_connections: 0,
    },
    managed_proxies: notBuilt,
    profiles: built,
    proxy_bypass_hosts: built,
    search: notBuilt,
    vaults: built,
  },
});
