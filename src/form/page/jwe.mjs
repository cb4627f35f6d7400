const encoder = new TextEncoder();

/** @param {Uint8Array} bytes */
function base64url(bytes) {
  const binary = Array.from(bytes, (byte) => String.fromCodePoint(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** What stands for a link in a header: its token is told to nobody. */
export const digestOf = async (token) =>
  base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(token))));

/** A number as four bytes, as the KDF takes it. */
const word = (number) => Uint8Array.of(number >>> 24, number >>> 16, number >>> 8, number);

const join = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));

/** The key of A256GCM that both sides of an ECDH derive (RFC 7518, 4.6.2); neither has a name. */
async function derive(secret) {
  const enc = encoder.encode("A256GCM");
  const info = [word(enc.length), enc, word(0), word(0), word(256)];
  const bits = await crypto.subtle.digest("SHA-256", join(word(1), secret, ...info));
  return await crypto.subtle.importKey("raw", bits, "AES-GCM", false, ["encrypt"]);
}

const curve = { name: "ECDH", namedCurve: "P-256" };

/** What only the owner of the private key can open: the public key of this one value, and who may derive. */
async function agree(jwk) {
  const { kty, crv, x, y } = jwk;
  const theirs = await crypto.subtle.importKey("jwk", { kty, crv, x, y }, curve, false, []);
  const ours = await crypto.subtle.generateKey(curve, true, ["deriveBits"]);
  const secret = await crypto.subtle.deriveBits({ name: "ECDH", public: theirs }, ours.privateKey, 256);
  const epk = await crypto.subtle.exportKey("jwk", ours.publicKey);
  return {
    epk: { kty: epk.kty, crv: epk.crv, x: epk.x, y: epk.y },
    key: await derive(new Uint8Array(secret)),
  };
}

/**
 * Encrypts a text for the vault's key: a compact JWE (RFC 7516), ECDH-ES and A256GCM. `field` and `link` stand
 * in the header that is signed with it, so that a value which was meant for one field of one form can be told
 * from another's.
 */
export async function encrypt(text, { field, link, key: { alg, enc, kid, jwk } }) {
  const { epk, key } = await agree(jwk);
  const header = base64url(encoder.encode(JSON.stringify({ alg, enc, kid, epk, field, link })));
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const options = { name: "AES-GCM", iv, additionalData: encoder.encode(header), tagLength: 128 };
  const sealed = new Uint8Array(await crypto.subtle.encrypt(options, key, encoder.encode(text)));
  const [ciphertext, tag] = [sealed.subarray(0, -16), sealed.subarray(-16)];
  return [header, "", base64url(iv), base64url(ciphertext), base64url(tag)].join(".");
}
