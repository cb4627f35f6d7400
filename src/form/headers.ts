/** Everything of the page is its own, and no script of it writes markup. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const unneeded = [
  "camera",
  "microphone",
  "geolocation",
  "payment",
  "usb",
  "display-capture",
  "clipboard-read",
];

const yearSeconds = 31_536_000;

/** Every answer of the form's server carries these. `isSecure`: browsers reach it by HTTPS alone. */
export const formHeaders = (isSecure: boolean): Readonly<Record<string, string>> => ({
  "content-security-policy": contentSecurityPolicy,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": unneeded.map((feature) => `${feature}=()`).join(", "),
  "x-robots-tag": "noindex",
  ...(isSecure && { "strict-transport-security": `max-age=${yearSeconds}` }),
});
