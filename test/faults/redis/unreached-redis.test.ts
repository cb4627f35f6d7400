import { expect } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { DaemonClient } from "../../support/daemon/daemon.js";
import { freePort } from "../../support/free-port.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();

for (const role of ["control", "node", "all"] as const) {
  fault(`Redis cannot be reached while a daemon of role ${role} starts`, async (tell) => {
    const port = await freePort();
    await bed.proxy.cut();
    const starting = bed.start(role, {}, { port });
    const daemon = new DaemonClient(`http://127.0.0.1:${port}`);
    const ready = (): ReturnType<typeof daemon.call> => daemon.call("GET /readyz");
    const asked = await until("an answer", () => ready().catch(() => undefined));
    expect(asked).toMatchObject({ status: 503, body: { code: "unavailable" } });
    expect((await daemon.call("GET /healthz")).status).toBe(200);
    await bed.proxy.restore();
    const watch = startWatch();
    await starting;
    await until("its readiness", async () => (await ready()).status === 200);
    expect(await ready()).toMatchObject({ status: 200, body: { status: "ready", store: "connected" } });
    tell({ saw: "503 from /readyz, 200 from /healthz", recoveryMs: watch.since() });
  });
}
