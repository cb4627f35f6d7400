import { generateKeyPairSync, randomBytes } from "node:crypto";
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
  type WebAuthnCredential,
} from "@simplewebauthn/server";
import type { Page } from "playwright-core";
import type { PasskeyCredential } from "../../../src/browser/passkeys/page-authenticators.js";

/** A site that one signs in to with a passkey (@simplewebauthn/server), and that of its only user. */
export interface RelyingParty {
  /** In the FIDO Credential Exchange Format. */
  readonly passkey: Readonly<Record<string, string>>;
  /** The counter of the last assertion that it has taken. */
  readonly counter: number;
  /** What a page runs gives the JSON of its assertion, or the name of the error; it waits so long for one. */
  challenge(limitMs?: number): Promise<{ readonly script: string; verify(answer: string): Promise<boolean> }>;
}

const rpId = "localhost";

/** COSE_Key of ES256 (RFC 9053). */
const coseKey = (x: Buffer, y: Buffer): Uint8Array<ArrayBuffer> =>
  new Uint8Array([
    ...Buffer.from("a5010203262001215820", "hex"),
    ...x,
    ...Buffer.from("225820", "hex"),
    ...y,
  ]);

/** A machine that is busy answers late, and is no fault. */
const patientMs = 20_000;
/** For a page that is to have no assertion. */
export const impatientMs = 2000;

export function openRelyingParty(origin: string): RelyingParty {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  const id = randomBytes(16).toString("base64url");
  const cose = coseKey(Buffer.from(x, "base64url"), Buffer.from(y, "base64url"));
  let counter = 0;
  return {
    passkey: {
      type: "passkey",
      credentialId: id,
      rpId,
      username: "me",
      userDisplayName: "Me",
      userHandle: randomBytes(8).toString("base64url"),
      key: privateKey.export({ format: "der", type: "pkcs8" }).toString("base64url"),
    },
    get counter() {
      return counter;
    },
    async challenge(limitMs = patientMs) {
      const options = await generateAuthenticationOptions({ rpID: rpId, userVerification: "required" });
      const given = JSON.stringify({ ...options, timeout: limitMs });
      return {
        // Chromium with windows asks its user where it has no passkey, for as long as it takes.
        script: `Promise.race([
          navigator.credentials.get({
            publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(${given}),
          }).then((found) => JSON.stringify(found.toJSON()), (error) => error.name),
          new Promise((resolve) => setTimeout(resolve, ${limitMs + 500}, "no answer")),
        ])`,
        async verify(answer) {
          const { verified, authenticationInfo } = await verifyAuthenticationResponse({
            response: JSON.parse(answer) as never,
            expectedChallenge: options.challenge,
            expectedOrigin: origin,
            expectedRPID: rpId,
            credential: { id, publicKey: cose, counter },
          });
          counter = authenticationInfo.newCounter;
          return verified;
        },
      };
    },
  };
}

/** A site that knows no passkey yet. */
export interface NewRelyingParty {
  /** The page makes one. */
  register(page: Page): Promise<void>;
  /** Whether the page signs in with the one that was made. */
  signIn(page: Page): Promise<boolean>;
}

export function openNewRelyingParty(expectedOrigin: string): NewRelyingParty {
  const site = { expectedOrigin, expectedRPID: rpId };
  let known: WebAuthnCredential | undefined;
  return {
    async register(page) {
      const options = await generateRegistrationOptions({
        rpName: "Site",
        rpID: rpId,
        userName: "me",
        supportedAlgorithmIDs: [-7],
        authenticatorSelection: { residentKey: "required", userVerification: "required" },
      });
      const made = await page.evaluate(`navigator.credentials.create({
        publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(${JSON.stringify(options)}),
      }).then((found) => JSON.stringify(found.toJSON()))`);
      const response = JSON.parse(String(made)) as never;
      const { challenge } = options;
      const { registrationInfo } = await verifyRegistrationResponse({
        ...site,
        response,
        expectedChallenge: challenge,
      });
      known = registrationInfo?.credential;
    },
    async signIn(page) {
      if (!known) throw new Error("not registered");
      const asked = await generateAuthenticationOptions({ rpID: rpId, userVerification: "required" });
      const answer = await page.evaluate(`navigator.credentials.get({
        publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(${JSON.stringify(asked)}),
      }).then((found) => JSON.stringify(found.toJSON()))`);
      const { verified, authenticationInfo } = await verifyAuthenticationResponse({
        ...site,
        response: JSON.parse(String(answer)) as never,
        expectedChallenge: asked.challenge,
        credential: known,
      });
      known = { ...known, counter: authenticationInfo.newCounter };
      return verified;
    },
  };
}

const base64 = (text = ""): string => Buffer.from(text, "base64url").toString("base64");

/** Its passkey as a browser is armed with it. */
export const credentialOf = (
  { passkey }: Pick<RelyingParty, "passkey">,
  signCount = 0,
): PasskeyCredential => ({
  rpId: "localhost",
  userName: "me",
  userDisplayName: "Me",
  credentialId: base64(passkey["credentialId"]),
  privateKey: base64(passkey["key"]),
  userHandle: base64(passkey["userHandle"]),
  signCount,
});
