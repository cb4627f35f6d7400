import { afterEach, expect, test } from "vitest";
import { Random } from "../../simulation/random.js";
import { sharedServer } from "../../support/http/http-server.js";
import { multipartBody, type SentPart, field, file } from "../../support/http/multipart-body.js";
import { stagingBed } from "../../support/archive/staging-bed.js";
import { digestOf, upload } from "../../support/http/extension-uploads.js";

const { staging, files } = await stagingBed();
const server = sharedServer({}, { staging });
afterEach(() => expect.poll(files).toEqual([]));

function shuffled<Item>(items: readonly Item[], random: Random): Item[] {
  const left = [...items];
  return items.flatMap(() => random.take(left) ?? []);
}
/** Both lists in their own order, mixed. */
function mixed<Item>(lists: readonly (readonly Item[])[], random: Random): Item[] {
  const left = lists.map((list) => [...list]).filter((list) => list.length > 0);
  const next = random.pick(left)?.shift();
  return next === undefined ? [] : [next, ...mixed(left, random)];
}
type Sent = readonly { readonly name: string; readonly bytes: Buffer }[];
const namings: Record<string, (sent: Sent, random: Random) => SentPart[]> = {
  indexed: (sent, random) =>
    shuffled(
      sent.flatMap(({ name, bytes }, at) => [
        field(`extensions[${at}][name]`, name),
        file(`extensions[${at}][zip_file]`, bytes),
      ]),
      random,
    ),
  repeated: (sent, random) =>
    mixed(
      [
        sent.map(({ name }) => field("extensions[][name]", name)),
        sent.map(({ bytes }) => file("extensions[][zip_file]", bytes)),
      ],
      random,
    ),
  "names first": (sent) => [
    ...sent.map(({ name }) => field("extensions[][name]", name)),
    ...sent.map(({ bytes }) => file("extensions[][zip_file]", bytes)),
  ],
  consecutive: (sent, random) =>
    sent.flatMap(({ name, bytes }) =>
      shuffled([field("extensions.name", name), file("extensions.zip_file", bytes)], random),
    ),
  listed: (sent, random) =>
    mixed(
      [
        [
          {
            name: "extensions",
            type: "application/json",
            content: JSON.stringify(
              sent.map(({ name }) => ({ name, zip_file: "extensions.items.zip_file" })),
            ),
          },
        ],
        sent.map(({ bytes }) => file("extensions.items.zip_file", bytes)),
      ],
      random,
    ),
};
function cut(body: Buffer, random: Random): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const size = random.chance(0.3) ? random.between(1, 5) : random.between(1, 5000);
    chunks.push(body.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

test.each(Object.keys(namings))(
  "parts named as %s clients do are paired, in random order and cut anywhere",
  async (naming) => {
    const seed = Number(process.hrtime.bigint() % 1_000_000n);
    const random = new Random(seed);
    for (let round = 0; round < 12; round += 1) {
      const sent = Array.from({ length: random.between(1, 20) }, (_, at) => ({
        name: `e${at}.${random.id(5)}`,
        bytes: Buffer.from(random.id(random.below(3000)).repeat(3)),
      }));
      const { status, text } = await upload(
        server(),
        cut(multipartBody(namings[naming]?.(sent, random) ?? []), random),
      );
      expect([status, text], `seed ${seed}`).toEqual([201, ""]);
      const expected = sent.map(({ name, bytes }) => ({ name, digest: digestOf(bytes) }));
      expect(server().operations.received.at(-1), `seed ${seed}`).toEqual(expected);
    }
  },
);
