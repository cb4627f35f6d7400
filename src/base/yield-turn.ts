/** Lets others have their turn of the event loop, for work that is more than one turn may take. */
export const yieldTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
