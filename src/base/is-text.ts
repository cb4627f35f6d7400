export const isText = (value: unknown): value is string => typeof value === "string";

/** Whether a value of somebody else's JSON is a list of texts. */
export const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText);
