/** The last bytes of a small answer. */
export const ending = "the end of what was asked for";
export const bodyPath = "/body";
export const bodyBytes = 256 * 1024 * 1024;
