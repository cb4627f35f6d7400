/** Lets others have their turn of the event loop, for work that is more than one turn may take. */
export const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
