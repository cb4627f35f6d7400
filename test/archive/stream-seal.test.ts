import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { Secret } from "../../src/base/crypto/secret.js";
import { DamagedSeal, StreamSeal } from "../../src/archive/stream-seal.js";
import { bytesOf } from "../support/archive/archive-bed.js";

const seal = new StreamSeal(new Secret("a key of this deployment, random"));
const headerBytes = 48;
const contentBytes = 65_536;
const frameBytes = contentBytes + 16;

async function* inChunks(bytes: Buffer, chunkBytes = 10_000): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}
const closed = (bytes: Buffer, owner = "alice"): Promise<Buffer> =>
  bytesOf(seal.close(owner)(inChunks(bytes)));
const opened = (sealed: Buffer, owner = "alice", by = seal): Promise<Buffer> =>
  bytesOf(by.open(owner)(inChunks(sealed, 7001)));

/** How much of it came out before the end or the fault. */
async function begun(sealed: Buffer): Promise<{ bytes: Buffer; fault: unknown }> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of seal.open("alice")(inChunks(sealed))) chunks.push(chunk);
    return { bytes: Buffer.concat(chunks), fault: undefined };
  } catch (fault) {
    return { bytes: Buffer.concat(chunks), fault };
  }
}

test.each([
  0,
  1,
  15,
  contentBytes - 1,
  contentBytes,
  contentBytes + 1,
  2 * contentBytes,
  3 * contentBytes + 17,
])("%i bytes come back as they were", async (size) => {
  const bytes = randomBytes(size);
  const sealed = await closed(bytes);
  expect(sealed).toHaveLength(headerBytes + size + 16 * Math.max(1, Math.ceil(size / contentBytes)));
  expect((await opened(sealed)).equals(bytes)).toBe(true);
});

test("any division into chunks will do", async () => {
  const bytes = randomBytes(200_000);
  const sealed = await closed(bytes);
  for (const size of [1_000_000, 65_536, 48, 47, 49, 997]) {
    expect((await bytesOf(seal.open("alice")(inChunks(sealed, size)))).equals(bytes)).toBe(true);
  }
});

test("nothing of the content is in it, and no two are alike", async () => {
  const bytes = Buffer.from("the cookie of a session ".repeat(10_000));
  const [one, other] = [await closed(bytes), await closed(bytes)];
  expect(one.includes("cookie")).toBe(false);
  expect(
    one.subarray(headerBytes, headerBytes + 64).equals(other.subarray(headerBytes, headerBytes + 64)),
  ).toBe(false);
});

test("another deployment's key opens nothing and says so", async () => {
  const sealed = await closed(randomBytes(1000));
  await expect(
    opened(sealed, "alice", new StreamSeal(new Secret("a key of another deployment"))),
  ).rejects.toMatchObject({ code: "secret_unreadable" });
});

test("another owner's does not open", async () => {
  await expect(opened(await closed(randomBytes(1000)), "bob")).rejects.toThrow(DamagedSeal);
});

describe("what was changed does not open", () => {
  const bytes = randomBytes(3 * contentBytes + 100);

  test("cut at or near every border of a frame", async () => {
    const sealed = await closed(bytes);
    const borders = [0, 1, 2, 3].map((frame) => headerBytes + frame * frameBytes);
    for (const border of [0, 8, ...borders, sealed.length]) {
      for (const end of [border - 17, border - 16, border - 1, border, border + 1, border + 16].filter(
        (at) => at >= 0 && at < sealed.length,
      )) {
        expect([end, (await begun(sealed.subarray(0, end))).fault]).toEqual([end, expect.any(DamagedSeal)]);
      }
    }
  });

  test("any one bit turned, and nothing wrong came out before", async () => {
    const sealed = await closed(bytes);
    const places = [
      ...Array.from({ length: headerBytes }, (_, at) => at),
      ...Array.from({ length: 150 }, () => Math.floor(Math.random() * sealed.length)),
    ];
    for (const at of places) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8));
      const { bytes: out, fault } = await begun(changed);
      expect([at, fault instanceof Error]).toEqual([at, true]);
      expect(bytes.subarray(0, out.length).equals(out)).toBe(true);
    }
  });

  test("frames out of order, twice, left out, or of another stream", async () => {
    const [one, other] = [await closed(bytes), await closed(bytes)];
    const header = one.subarray(0, headerBytes);
    const frames = (of: Buffer): Buffer[] =>
      [0, 1, 2, 3].map((frame) =>
        of.subarray(headerBytes + frame * frameBytes, headerBytes + (frame + 1) * frameBytes),
      );
    const [a, b, c, d] = frames(one);
    const [, foreign] = frames(other);
    if (!a || !b || !c || !d || !foreign) throw new Error("too few frames");
    for (const order of [
      [b, a, c, d],
      [a, a, b, c, d],
      [a, c, d],
      [a, b, d],
      [a, b, c, d, d],
      [a, foreign, c, d],
      [d],
    ]) {
      await expect(opened(Buffer.concat([header, ...order]))).rejects.toThrow(DamagedSeal);
    }
    expect((await opened(Buffer.concat([header, a, b, c, d]))).equals(bytes)).toBe(true);
  });

  test("more after its end", async () => {
    const sealed = await closed(bytes);
    for (const more of [1, 16, 17, frameBytes])
      await expect(opened(Buffer.concat([sealed, Buffer.alloc(more)]))).rejects.toThrow(DamagedSeal);
  });

  test("anything else", async () => {
    for (const text of ["", "rmdseal1", "v1.abc.def", "x".repeat(5000)])
      await expect(opened(Buffer.from(text))).rejects.toThrow(DamagedSeal);
  });
});

test("a source that fails makes the stream fail", async () => {
  const failing = new Readable({
    read() {
      this.destroy(new Error("the disk is full"));
    },
  });
  await expect(bytesOf(seal.close("alice")(failing))).rejects.toThrow("the disk is full");
});
