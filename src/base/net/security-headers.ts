/**
 * Every answer carries these, because none of them is a page or belongs into one. The pages of the
 * documentation have a policy of their own.
 */
export const securityHeaders = {
  "content-security-policy":
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
} as const;
