/** The token of an `Authorization` header (RFC 6750, 2.1), where there is one. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  /^bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
