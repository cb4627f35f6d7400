import { lookup } from "node:dns/promises";
import type { OwnPlace } from "./egress/own.js";

/** A socket has no port that could be reached. */
export function redisPlace(url: string): OwnPlace | undefined {
  if (url.startsWith("/")) return undefined;
  const { hostname, port } = new URL(url);
  return { host: hostname.replaceAll(/^\[|\]$/g, ""), port: Number(port || 6379) };
}

/** Every address of a place. A name that cannot be resolved now is left to the rules, which know it by no address either. */
export async function placesOf(place: OwnPlace | undefined): Promise<OwnPlace[]> {
  if (!place) return [];
  const found = await lookup(place.host, { all: true }).catch(() => []);
  return [place, ...found.map(({ address }) => ({ host: address, port: place.port }))];
}
