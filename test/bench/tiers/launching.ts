import { systemClock } from "../../../src/base/clock.js";
import { newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import type { LaunchStage } from "../../../src/browser/launch-attempt.js";
import type { Chromium, BrowserProxy, Engine } from "../../../src/browser/chromium.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { launchChromium } from "../../support/browser/launch-chromium.js";
import type { Egress } from "../../../src/egress/egress.js";
import { defaultViewport } from "../../../src/spec/launch-template.js";
import { launchSpec } from "../../support/browser/chromium-host.js";
import type { EgressChoice } from "./ways.js";

export interface Launched {
  readonly chromium: Chromium;
  /** The time from the opening of its egress to the end of the launch. */
  readonly readyMs: number;
  /** The part of it in which the egress was proved; NaN without one. */
  readonly attestMs: number;
  /** Ends the browser and its egress. */
  end(): Promise<void>;
}

export interface Launcher {
  launch(engine: Engine, choice: EgressChoice): Promise<Launched>;
  /** Gives up what is under way and ends whatever has not been ended. */
  close(): Promise<void>;
}

export function makeLauncher(host: BrowserHost): Launcher {
  const giveUp = new AbortController();
  const live = new Set<Promise<Launched>>();
  return {
    async launch(engine, choice) {
      const launching = launch({ engine, choice, host, signal: giveUp.signal });
      live.add(launching);
      const launched = await launching;
      return { ...launched, end: () => launched.end().then(() => void live.delete(launching)) };
    },
    async close() {
      giveUp.abort();
      for (const launching of live)
        await launching.then(
          ({ end }) => end(),
          () => {},
        );
    },
  };
}

interface Launch {
  readonly engine: Engine;
  readonly choice: EgressChoice;
  readonly host: BrowserHost;
  readonly signal: AbortSignal;
}

async function launch({ engine, choice, host, signal }: Launch): Promise<Launched> {
  const browser = newBrowserId(onDemandPartition);
  const reachedAt: Partial<Record<LaunchStage, number>> = {};
  const onStage = (stage: LaunchStage): void => void (reachedAt[stage] = systemClock.monotonic());
  const started = systemClock.monotonic();
  const egress = await choice.openEgress?.(browser);
  try {
    const spec = launchSpec({
      browser,
      engine,
      viewport: defaultViewport,
      ...(egress && { egress: proxyOf(egress) }),
    });
    const chromium = await launchChromium(spec, host, { signal, onStage });
    const end = async (): Promise<void> => {
      await chromium.kill();
      await egress?.close();
    };
    const { egress: attestingAt = Number.NaN, ready: readyAt = Number.NaN } = reachedAt;
    return { chromium, readyMs: systemClock.monotonic() - started, attestMs: readyAt - attestingAt, end };
  } catch (error) {
    await egress?.close();
    throw error;
  }
}

/** The proxy as the daemon gives it: the launch has to prove it. */
const proxyOf = (egress: Egress): BrowserProxy => ({
  proxyUrl: egress.proxyUrl,
  attesting: { usage: () => egress.usage() },
  ...(egress.namespace !== undefined && { namespace: egress.namespace }),
});
