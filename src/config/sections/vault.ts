import { Type } from "typebox";
import { bytes, count, httpOrigin, millis, oneOf, secretOr, switched, text, textOr } from "../kinds.js";

const formSection = Type.Object({
  host: text("address where the form that collects values listens, once it has a public_url")("127.0.0.1"),
  port: count("its port, apart from the API's; 0 takes any free one", "port", [0, 65_535])(4701),
  attempts_per_minute: count(
    "times that one address may open or submit forms in a minute",
    "attempts",
    [1, 100_000],
  )(60),
  public_url: textOr("where people open the form that collects values, as they reach it from outside")(
    "nothing is collected by forms",
    httpOrigin,
  ),
});

const keysSection = Type.Object({
  provider: oneOf(
    "who wraps the keys of vaults: local: encryption_key; transit: HashiCorp Vault; aws_kms: AWS KMS",
    ["local", "transit", "aws_kms"],
  )("local"),
  previous_encryption_key: secretOr(
    "unwraps too: the encryption_key before this one, or the next while daemons change (docs/vault.md)",
  )("there was none", {
    env: "REMUDA_PREVIOUS_ENCRYPTION_KEY",
    pattern: "^[!-~]{16,}$",
    form: "as encryption_key",
  }),
  transit_address: textOr("address of HashiCorp Vault")("it is not asked", httpOrigin),
  transit_token: secretOr("its token, which may encrypt and decrypt with the key")("it is not asked", {
    env: "REMUDA_TRANSIT_TOKEN",
  }),
  transit_mount: text("where its transit engine is mounted")("transit", {
    pattern: "^[\\w-]+(/[\\w-]+)*$",
    form: "a path such as transit",
  }),
  transit_key: text("the key of the transit engine")("remuda"),
  kms_key: textOr("id, alias or ARN of the key of AWS KMS")("it is not asked"),
  kms_region: textOr("its region")("it is not asked", { pattern: "^[a-z0-9-]+$", form: "such as eu-west-1" }),
  kms_endpoint: textOr("address of AWS KMS")("Amazon's", httpOrigin),
  kms_access_key_id: secretOr("who signs requests to AWS KMS")("it is not asked", {
    env: "REMUDA_KMS_ACCESS_KEY_ID",
  }),
  kms_secret_access_key: secretOr("its key")("it is not asked", { env: "REMUDA_KMS_SECRET_ACCESS_KEY" }),
  limit_ms: millis("a request to either has to be answered within", [100, 60_000])(5000),
});

export const vaultSection = Type.Object({
  max_vaults: count("vaults that a project may have", "vaults", [0, 10_000])(100),
  max_items: count("items that a vault may have", "items", [1, 10_000])(500),
  max_vault_bytes: bytes("that all items of a vault take, encrypted", [2 ** 16, 2 ** 30])(8 * 2 ** 20),
  max_project_bytes: bytes("that all vaults of a project take, encrypted", [2 ** 16, 2 ** 36])(256 * 2 ** 20),
  names: oneOf(
    "what providers and operations are called in answers: neutral: native, pm_fill; public: kernel, 1pw_fill; both are taken",
    ["neutral", "public"],
  )("neutral"),
  allow_lossy_redis: switched("whether vaults are written although Redis may lose what it has acknowledged")(
    false,
  ),
  keys: keysSection,
  form: formSection,
});
