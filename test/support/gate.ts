/** Something that a server comes to, and stands still at until it is let go on. */
export function gate() {
  let open = (): void => {};
  let reach = (): void => {};
  const reached = new Promise<void>((resolve) => (reach = resolve));
  const opened = new Promise<void>((resolve) => (open = resolve));
  const pass = async (): Promise<void> => {
    reach();
    await opened;
  };
  return { reached, pass, open };
}
