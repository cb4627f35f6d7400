import type { Detail } from "../../base/errors.js";
import type { DestinationCreate, DestinationPatch, DestinationPlace } from "./destination.js";

/**
 * The commercial partition of Amazon's cloud; others (China, GovCloud, sovereign ones) have roles of their
 * own.
 */
const commercialRegion = /^(?!cn-|us-gov-|us-iso|eu-iso|eusc-)[a-z]{2}(-[a-z]+)+-\d{1,2}$/;
const anyRegion = /^[a-z0-9][a-z0-9-]*$/;
const roleForm = /^arn:aws:iam::\d{12}:role\/[\w+=,.@/-]{1,576}$/;
const kmsArnForm = /^arn:aws:kms:([a-z0-9-]+):\d{12}:(?:key|alias)\/[\w/-]{1,256}$/;
const kmsNameForm = /^[\w/-]{1,256}$/;
/** Characters that mean nothing in a URL, in a pattern of a policy, or to a shell. */
const prefixForm = /^[A-Za-z0-9!_.=-]+(?:\/[A-Za-z0-9!_.=-]+)*$/;

/**
 * What is wrong with where a destination is; all of it is looked at together, since one field judges another.
 */
export function placeFaults(
  place: DestinationPlace,
  { isCommercial }: { isCommercial: boolean },
): readonly Detail[] {
  const { region, bucket, prefix, roleArn, kmsKeyId } = place;
  const isRegion = (isCommercial ? commercialRegion : anyRegion).test(region);
  const faults: readonly (readonly [isWrong: boolean, message: string])[] = [
    [
      !isRegion,
      `region: must be a region${isCommercial ? " of the commercial partition" : ""} such as us-east-1`,
    ],
    [!isBucket(bucket), "bucket: must be the name of a bucket, as Amazon S3 has them"],
    [
      !isPrefix(prefix),
      "prefix: must be empty, or parts of letters, digits and !_.=- with a slash between, none of them . or ..",
    ],
    [!roleForm.test(roleArn), "role_arn: must be like arn:aws:iam::123456789012:role/name"],
    [kmsKeyId !== undefined && !isKmsKey(kmsKeyId, region), `kms_key_id: ${kmsRule}`],
  ];
  return faults.flatMap(([isWrong, message]) => (isWrong ? [{ code: "invalid_input", message }] : []));
}

const kmsRule =
  "must be a key's id, an alias, or an ARN of the commercial partition in the destination's own region";

function isKmsKey(key: string, region: string): boolean {
  if (!key.startsWith("arn:")) return kmsNameForm.test(key);
  return kmsArnForm.exec(key)?.[1] === region;
}

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html */
const isBucket = (name: string): boolean =>
  /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name) &&
  !/\.\.|^\d+\.\d+\.\d+\.\d+$|^(?:xn--|sthree-|amzn-s3-demo-)|(?:-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$/.test(
    name,
  );

const isPrefix = (prefix: string): boolean =>
  prefix === "" ||
  (prefixForm.test(prefix) && !prefix.split("/").some((part) => part === "." || part === ".."));

export const placeOf = (body: DestinationCreate): DestinationPlace => ({
  region: body.region,
  bucket: body.bucket,
  prefix: body.prefix,
  roleArn: body.role_arn,
  ...(body.kms_key_id && { kmsKeyId: body.kms_key_id }),
});

/** Where a destination is after a change; a KMS key that is null stays, an empty one goes. */
export function mergedPlace(place: DestinationPlace, patch: DestinationPatch): DestinationPlace {
  const kmsKeyId = patch.kms_key_id ?? place.kmsKeyId;
  return {
    region: patch.region ?? place.region,
    bucket: patch.bucket ?? place.bucket,
    prefix: patch.prefix ?? place.prefix,
    roleArn: patch.role_arn ?? place.roleArn,
    ...(kmsKeyId && { kmsKeyId }),
  };
}
