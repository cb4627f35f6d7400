/**
 * Whether a server syncs before it answers WAITAOF (src/store/redis/append-wait.ts), by what it says of
 * itself.
 */
export const isWaitedFor = (info: string): boolean =>
  Number(/^redis_version:(\d+)/m.exec(info)?.[1]) >= 8 && !info.includes("valkey");
