import { isIPv4 } from "node:net";
import { parseHost } from "./hosts.js";

/** What reaches an IPv4 address through NAT64 (RFC 6052). */
export const nat64 = (address: string): string => parseHost(`64:ff9b::${address}`)?.host ?? address;

/**
 * Instances get credentials from their cloud at these addresses, so no range and no name opens them, only
 * their own exact mention.
 */
const metadata = [
  "169.254.169.254", // AWS, Google, Azure, DigitalOcean, Oracle, OpenStack
  "169.254.170.2",
  "169.254.170.23",
  "fd00:ec2::254",
  "fd00:ec2::23", // AWS: container roles, EKS pod identity, IMDS over IPv6
  "fd20:ce::254", // Google, IPv6-only instances
  "100.100.100.200", // Alibaba
  "168.63.129.16", // Azure's wire server, a public address
  "192.0.0.192", // Oracle, first generation
  "169.254.42.42", // Scaleway
  "169.254.0.23", // Tencent
];
const metadataAddresses = new Set([...metadata, ...metadata.filter(isIPv4).map(nat64)]);

/** `address` in canonical form, as `parseHost` gives it. */
export const isMetadata = (address: string): boolean => metadataAddresses.has(address);
