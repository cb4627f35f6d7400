import { type Attack, attacks } from "./attacks.js";

const all: Readonly<Record<string, Attack>> = attacks;
const attack = all[process.env["REMUDA_BENCH_ATTACK"] ?? ""];
if (!attack) throw new Error("there is no such attack");
await attack({ cdpUrl: process.env["REMUDA_BENCH_CDP_URL"] ?? "" });
// What counts is the attack under way, not its first burst, which everybody may have.
await new Promise((resolve) => setTimeout(resolve, 1000));
console.log("attacking");
