import { type Done, done, refusal, type Refusal } from "../../base/errors.js";
import type { SessionReader } from "../../pool/launch-templates.js";
import { findSession } from "../../pool/lookup.js";
import type { PoolStore } from "../../pool/ports/pool-store.js";
import type { ProjectStore } from "../../pool/ports/project-store.js";
import { capturingLease } from "../../pool/session.js";
import type { CaptchaResult } from "../../spec/captcha-result.js";
import type { Caller } from "../../spec/caller.js";
import type { TellHolder } from "../../telemetry/tell-holder.js";

interface ReportCaptchaPorts {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly sessionReader: SessionReader;
  readonly tellHolder: TellHolder;
}

/** POST /browsers/{id}/telemetry/captcha_solve_results: a solver outside says what came of a captcha. */
export const makeReportCaptcha =
  (ports: ReportCaptchaPorts) =>
  async (ref: string, result: CaptchaResult, caller: Caller): Promise<Done<null> | Refusal> => {
    const found = await findSession(ports, ref);
    const session = found && (await ports.sessionReader.findSession(found.browser, found.at));
    if (!session) return refusal("browser_not_found");
    if (caller.lease && caller.lease !== session.browser.lease.id) return refusal("lease_superseded");
    ports.tellHolder(capturingLease(session), {
      type: "captcha_solve_result",
      category: "captcha",
      source: { kind: "kernel_api" },
      data: { ...result },
    });
    return done(null);
  };
