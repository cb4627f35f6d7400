/** Gives a place to wait, which what it answers gives back; undefined where as many wait as may. */
export type TakeSeat = () => (() => void) | undefined;

const mostWaiting = 500;

export function makeSeats(): TakeSeat {
  let taken = 0;
  return () => {
    if (taken >= mostWaiting) return undefined;
    taken += 1;
    return () => void (taken -= 1);
  };
}
