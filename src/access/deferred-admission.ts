import type { Admitted, DeferredAdmission, JudgedKey, Principal } from "./principal.js";

interface Deferred {
  /** Whom the key let in when it came last here. */
  readonly principal: Principal;
  readonly key: JudgedKey;
  /** Looks the key up in a round trip of its own. */
  look(): Promise<Admitted>;
}

export function deferAdmission({ principal, key, look }: Deferred): DeferredAdmission {
  let admitted: Promise<Admitted> | undefined;
  return {
    principal,
    due: () => (admitted ? undefined : key),
    letIn(rate) {
      admitted = Promise.resolve({ kind: "admitted", principal, ...(rate && { rate }) });
    },
    judge() {
      admitted ??= look();
      return admitted;
    },
  };
}
