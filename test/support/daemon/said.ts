/** The private Redis that a daemon has said it started. */
export const redisPidIn = (log: string): number => Number(/"redisPid":(\d+)/.exec(log)?.[1]);

/** The address it has said that it listens on. */
export const urlIn = (log: string): string | undefined =>
  /"url":"([^"]+)"[^\n]*"msg":"listening"/.exec(log)?.[1];
