/** Lets others have theirs: thousands of entries are more work than one turn of the event loop may take. */
export const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
