import { expect, test } from "vitest";
import { strangeVariables } from "../../src/config/validate.js";

test("variables that are called like settings and are none are told, but for those of Kubernetes's Services", () => {
  const ofServices = {
    REMUDA_CONTROL_SERVICE_HOST: "10.0.0.1",
    REMUDA_CONTROL_SERVICE_PORT_HTTP: "80",
    REMUDA_REDIS_PORT: "tcp://10.0.0.2:6379",
    REMUDA_REDIS_PORT_6379_TCP_ADDR: "10.0.0.2",
  };
  const settings = { REMUDA_CONFIG: "a.json", REMUDA_PORT: "1", REDIS_URL: "redis://a" };
  const strange = { REMUDA_PROT: "2", REMUDA_NODEID: "a", REMUDA_SERVER_PORT: "4700" };
  expect(strangeVariables({ PATH: "/bin", ...settings, ...ofServices, ...strange })).toEqual([
    "REMUDA_NODEID",
    "REMUDA_PROT",
    "REMUDA_SERVER_PORT",
  ]);
});
