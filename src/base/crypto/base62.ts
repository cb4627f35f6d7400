const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** The last digits to base 62 of what the bytes are as a number; a double click selects such a text whole. */
export function toBase62(bytes: Buffer, length: number): string {
  let left = BigInt(`0x${bytes.toString("hex")}`);
  let text = "";
  while (text.length < length) {
    text = (alphabet[Number(left % 62n)] ?? "") + text;
    left /= 62n;
  }
  return text;
}

/** The same of a number below 2^53, in a fraction of the time. */
export function toShortBase62(number: number, length: number): string {
  let left = number;
  let text = "";
  while (text.length < length) {
    text = (alphabet[left % 62] ?? "") + text;
    left = Math.floor(left / 62);
  }
  return text;
}
