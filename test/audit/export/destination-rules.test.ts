import { expect, test } from "vitest";
import { mergedPlace, placeFaults, placeOf } from "../../../src/audit/export/destination-rules.js";
import type { DestinationPlace } from "../../../src/audit/export/destination.js";

const place: DestinationPlace = {
  region: "eu-west-1",
  bucket: "logs.example",
  prefix: "remuda/audit",
  roleArn: "arn:aws:iam::123456789012:role/path/logs",
};
const faults = (over: Partial<DestinationPlace>, isCommercial = true): readonly string[] =>
  placeFaults({ ...place, ...over }, { isCommercial }).map(({ message }) => message.split(":")[0] ?? "");
const keyIn = (region: string, partition = "aws"): Partial<DestinationPlace> => ({
  kmsKeyId: `arn:${partition}:kms:${region}:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab`,
});

test.each<[what: string, over: Partial<DestinationPlace>]>([
  ["as it is", {}],
  ["an empty prefix", { prefix: "" }],
  ["a prefix of the longest kind", { prefix: "a".repeat(512) }],
  ["a region with a longer name", { region: "ap-southeast-2" }],
  ["a key of its own region", keyIn("eu-west-1")],
  ["a key by its id", { kmsKeyId: "mrk-1234abcd12ab34cd56ef1234567890ab" }],
  ["a key by its alias", { kmsKeyId: "alias/logs" }],
])("a place is taken: %s", (_, over) => {
  expect(faults(over)).toEqual([]);
});

test.each<[what: string, over: Partial<DestinationPlace>, field: string]>([
  ["no region", { region: "Ireland" }, "region"],
  ["a region of China", { region: "cn-north-1" }, "region"],
  ["a region of GovCloud", { region: "us-gov-west-1" }, "region"],
  ["a host in place of a region", { region: "evil.example/us-east-1" }, "region"],
  ["capitals in a bucket", { bucket: "Logs" }, "bucket"],
  ["an address as a bucket", { bucket: "192.168.0.1" }, "bucket"],
  ["two dots in a bucket", { bucket: "a..b" }, "bucket"],
  ["an access point as a bucket", { bucket: "logs-s3alias" }, "bucket"],
  ["a slash before a prefix", { prefix: "/a" }, "prefix"],
  ["a slash after a prefix", { prefix: "a/" }, "prefix"],
  ["an empty part", { prefix: "a//b" }, "prefix"],
  ["a way up", { prefix: "a/../b" }, "prefix"],
  ["a star, which a policy would take for anything", { prefix: "*" }, "prefix"],
  ["what a policy would put a variable in for", { prefix: "${aws:username}" }, "prefix"],
  ["a role of another partition", { roleArn: "arn:aws-cn:iam::123456789012:role/logs" }, "role_arn"],
  ["a user as a role", { roleArn: "arn:aws:iam::123456789012:user/logs" }, "role_arn"],
  ["a key of another region", keyIn("eu-west-2"), "kms_key_id"],
  ["a key of another partition", keyIn("eu-west-1", "aws-cn"), "kms_key_id"],
  ["no key at all", { kmsKeyId: "a key" }, "kms_key_id"],
])("a place is refused: %s", (_, over, field) => {
  expect(faults(over)).toEqual([field]);
});

test("every fault is told", () => {
  expect(faults({ region: "", bucket: "x", prefix: "/", roleArn: "", kmsKeyId: "?" })).toEqual([
    "region",
    "bucket",
    "prefix",
    "role_arn",
    "kms_key_id",
  ]);
});

test("one's own store may call its region as it likes", () => {
  expect(faults({ region: "garage" }, false)).toEqual([]);
  expect(faults({ region: "a.b" }, false)).toEqual(["region"]);
});

test("a change is judged with what stays: a key of the old region does not go with the new one", () => {
  const keyed: DestinationPlace = { ...place, ...keyIn("eu-west-1") };
  const moved = mergedPlace(keyed, { region: "eu-west-2" });
  expect(faults(moved)).toEqual(["kms_key_id"]);
  expect(faults(mergedPlace(keyed, { region: "eu-west-2", kms_key_id: "" }))).toEqual([]);
});

test("a key that is null stays, and an empty one goes", () => {
  const keyed: DestinationPlace = { ...place, kmsKeyId: "alias/logs" };
  expect(mergedPlace(keyed, { kms_key_id: null })).toEqual(keyed);
  expect(mergedPlace(keyed, {})).toEqual(keyed);
  expect(mergedPlace(keyed, { kms_key_id: "" })).toEqual(place);
  expect(mergedPlace(place, { kms_key_id: "alias/logs", bucket: "other" })).toEqual({
    ...keyed,
    bucket: "other",
  });
  const body = { type: "s3", format: "jsonl.gz", role_arn: place.roleArn, ...place } as const;
  expect(placeOf({ ...body, kms_key_id: null })).toEqual(place);
});
