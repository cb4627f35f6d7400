import type { Directories } from "../../browser/chromium.js";
import type { Command, Params } from "../cdp/command.js";

/** What a rule knows of the browser. */
export interface GateContext {
  readonly directories: Pick<Directories, "downloads" | "uploads" | "temporary">;
  /** The number of other messages that the command came in. */
  readonly carriers?: number;
}

/**
 * What becomes of a command.
 *
 * - `pass`: nothing against it.
 * - `rewrite`: it goes on with these params, through the rules that follow.
 * - `refuse`: the client gets an error with this message; Chromium never sees it.
 * - `answer`: the client gets this result, and is then disconnected if so said; Chromium never sees it.
 */
export type Verdict =
  | { readonly kind: "pass" }
  | { readonly kind: "rewrite"; readonly params: Params }
  | { readonly kind: "refuse"; readonly message: string }
  | { readonly kind: "answer"; readonly result: object; readonly andDisconnect: boolean };

export type Rule = (command: Command, context: GateContext) => Verdict;

/** What the gate decides in the end. */
export type Judgement =
  | { readonly kind: "pass"; readonly command: Command }
  | Exclude<Verdict, { kind: "pass" | "rewrite" }>;
export type Gate = (command: Command, context: GateContext) => Judgement;

export const pass: Verdict = { kind: "pass" };
export const refuseCommand = (message: string): Verdict => ({ kind: "refuse", message });

/**
 * The one seam where each client command is seen. Rules are asked in order; the first that refuses or answers
 * decides.
 */
export const makeGate =
  (rules: readonly Rule[]): Gate =>
  (command, context) => {
    let judged = command;
    for (const rule of rules) {
      const verdict = rule(judged, context);
      if (verdict.kind === "refuse" || verdict.kind === "answer") return verdict;
      if (verdict.kind === "rewrite") judged = { ...judged, params: verdict.params };
    }
    return { kind: "pass", command: judged };
  };
