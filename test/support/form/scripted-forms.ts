import type { VaultId } from "../../../src/base/ids.js";
import {
  calculateJwkThumbprint,
  type CompactJWEHeaderParameters,
  compactDecrypt,
  exportJWK,
  generateKeyPair,
} from "jose";
import type {
  CollectionForms,
  FormEnd,
  FormField,
  OpenForm,
  Submission,
  Submitted,
} from "../../../src/vault/collection-form.js";

/** What a submission brought, opened with the vault's private key. */
export interface Taken {
  readonly version: number;
  readonly values: Readonly<Record<string, string>>;
  readonly headers: readonly CompactJWEHeaderParameters[];
}

export const field = (over: Partial<FormField> & { name: string }): FormField => ({
  type: "text",
  label: null,
  required: true,
  sensitive: false,
  hasValue: false,
  value: null,
  ...over,
});

export const loginFields: readonly FormField[] = [
  field({ name: "username", label: "User name", value: "ada", hasValue: true }),
  field({ name: "mail", label: "E-mail", type: "email", required: false }),
  field({ name: "password", label: "Password", type: "password", sensitive: true }),
];

export const token = "wF3qP0cW1m6sJ0nXkq2R8bTz5yVhL9aE4dGu7iOSfMc";

/** Stands for the vault: a test says what it answers, and it opens what it is sent as the vault would. */
export class ScriptedForms implements CollectionForms {
  readonly #keys = generateKeyPair("ECDH-ES", { crv: "P-256", extractable: true });
  readonly opened: string[] = [];
  readonly taken: Taken[] = [];
  fields: readonly FormField[] = loginFields;
  title = "Example shop";
  vaultName = "team-logins";
  expiresInMs = 1_800_000;
  /** Told instead of the form. */
  end: FormEnd["kind"] | undefined;
  /** Told instead of what a submission would come to. */
  answer: Submitted | undefined;
  /** Waited for before a submission is answered. */
  hold: Promise<unknown> = Promise.resolve();
  /** How many have come so far. */
  held = 0;
  #done: string | undefined;

  async open(given: string): Promise<OpenForm | FormEnd> {
    this.opened.push(given);
    if (given !== token) return { kind: "gone" };
    if (this.end) return { kind: this.end };
    const { title, vaultName, fields } = this;
    const jwk = await exportJWK((await this.#keys).publicKey);
    const encryptionKey = {
      alg: "ECDH-ES",
      enc: "A256GCM",
      kid: await calculateJwkThumbprint(jwk),
      jwk,
    } as const;
    const expiresAt = Date.now() + this.expiresInMs;
    return {
      kind: "form",
      item: { vault: "v_1" as VaultId, key: "the/shop" },
      title,
      vaultName,
      fields,
      version: 3,
      encryptionKey,
      expiresAt,
    };
  }

  async submit(given: string, { version, values }: Submission): Promise<Submitted> {
    this.held += 1;
    await this.hold;
    if (given !== token) return { kind: "gone" };
    const sent = JSON.stringify([version, values]);
    if (this.#done === sent) return { kind: "done" };
    const opened = await Promise.all(Object.entries(values).map(([name, jwe]) => this.#decrypt(name, jwe)));
    const ofNames = opened.map(({ name, plaintext }) => [name, plaintext] as const);
    this.taken.push({
      version,
      values: Object.fromEntries(ofNames),
      headers: opened.map(({ header }) => header),
    });
    if (this.answer) return this.answer;
    if (this.end) return { kind: this.end };
    this.end = "used";
    this.#done = sent;
    return { kind: "done" };
  }

  async #decrypt(name: string, jwe: string) {
    const got = await compactDecrypt(jwe, (await this.#keys).privateKey, {
      keyManagementAlgorithms: ["ECDH-ES"],
      contentEncryptionAlgorithms: ["A256GCM"],
    });
    return { name, plaintext: new TextDecoder().decode(got.plaintext), header: got.protectedHeader };
  }
}
