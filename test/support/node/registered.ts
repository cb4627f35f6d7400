import { createHash } from "node:crypto";
import { systemClock } from "../../../src/base/clock.js";
import {
  type Digest,
  type ExtensionId,
  newExtensionId,
  newProfileId,
  type ProfileId,
} from "../../../src/base/ids.js";
import { until } from "../browser/chromium-until.js";
import type { StoreBed } from "../store/store-bed.js";

const digestOf = (text: string): Digest => createHash("sha256").update(text).digest("hex") as Digest;

/** An extension in the registry; its archive is nowhere. */
export async function anExtension(
  { extensions }: Pick<StoreBed, "extensions">,
  name?: string,
): Promise<ExtensionId> {
  const id = newExtensionId();
  await extensions.create({
    id,
    ...(name !== undefined && { name }),
    digest: digestOf(id),
    sizeBytes: 1,
    most: 100,
  });
  return id;
}

/** A profile in the registry, never saved. */
export async function aProfile({ profiles }: Pick<StoreBed, "profiles">, name?: string): Promise<ProfileId> {
  const id = newProfileId();
  await profiles.create({ id, ...(name !== undefined && { name }), most: 100 });
  return id;
}

let saves = 0;
/** Saves as a node does; returns the instant, which Redis gives. */
export async function save({ profiles }: Pick<StoreBed, "profiles">, id: ProfileId): Promise<number> {
  await profiles.commit(id, { digest: digestOf(`${id} ${(saves += 1)}`), sizeBytes: 1 });
  const savedAt = (await profiles.find(id))?.archive?.savedAt;
  if (savedAt === undefined) throw new Error(`profile ${id} was not saved`);
  // What happens in the same millisecond is taken to happen before the save; tests mean what follows it to be
  // later.
  await until("the next millisecond", () => systemClock.now() > savedAt + 1);
  return savedAt;
}
