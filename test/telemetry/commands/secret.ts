/** What no event may have in it. */
export const secret = "sEcReT-7b1f";

/** Arguments of a command, and what is told of them. */
export type Example = readonly [params: object, told: object];
