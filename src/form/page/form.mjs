import { Field } from "./fields.mjs";
import { digestOf, encrypt } from "./jwe.mjs";

const find = (id) => document.getElementById(id);
const states = [...document.querySelectorAll("main > .state[id]")];
const send = find("send");

/** The link's token: out of the address before anything else is done, and kept nowhere but here. */
const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
history.replaceState(null, "", location.pathname);

let form;
let fields = [];
let endsAt = Infinity;
let stopWatch = () => {};
/** What is being sent, as it is: a repeat of the same bytes means the same submission. */
let body;
let isSending = false;

/** Shows one state and hides all others; a reader's focus goes to its heading. */
function show(state) {
  for (const section of states) section.hidden = section.id !== state;
  const section = find(state);
  document.title = `${section.dataset.title} · Remuda vault`;
  section.querySelector("h1").focus();
}

/** States in which nothing more can be entered leave nothing of what was. */
function end(state) {
  stopWatch();
  for (const field of fields) field.clear();
  fields = [];
  form = body = undefined;
  find("fields").replaceChildren();
  show(state);
}

const requestLimitMs = 30_000;

/** An answer of the server, or undefined where none has come. */
async function ask(path, text) {
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: text,
      credentials: "omit",
      referrerPolicy: "no-referrer",
      redirect: "error",
      signal: AbortSignal.timeout(requestLimitMs),
    });
    const answer = await response.json();
    const wait = Number(response.headers.get("retry-after") ?? 0);
    return typeof answer.state === "string" ? { ...answer, wait } : undefined;
  } catch {
    return undefined;
  }
}

const ends = new Set(["done", "expired", "replaced", "used", "gone"]);
let retry = open;

async function open() {
  retry = open;
  if (!isSecureContext || !crypto.subtle) return show("insecure");
  if (token === "") return end("gone");
  show("loading");
  const answer = await ask("/open", JSON.stringify({ token }));
  if (answer?.state === "form") return start(answer);
  if (ends.has(answer?.state)) return end(answer.state);
  show("offline");
}

function start(opened) {
  form = opened;
  find("vault").textContent = opened.vault;
  find("title").textContent = opened.title === "" ? "Details are needed" : opened.title;
  fields = opened.fields.map((spec, at) => new Field(spec, at));
  find("fields").replaceChildren(...fields.map(({ element }) => element));
  watch(opened.expires_in_ms);
  show("form");
}

/** It is said in time that the link ends, and everything that was entered goes with it. */
function watch(forMs) {
  endsAt = performance.now() + forMs;
  const at = new Date(Date.now() + forMs).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  find("until").textContent = `This page can be used until ${at}. After that you need a new link.`;
  const warning = setTimeout(
    () => (find("announced").textContent = `This page can be used for two more minutes, until ${at}.`),
    Math.max(0, forMs - 120_000),
  );
  const timer = setTimeout(() => isSending || end("expired"), forMs);
  stopWatch = () => [warning, timer].forEach((one) => clearTimeout(one));
}

function busy(isBusy) {
  isSending = isBusy;
  send.setAttribute("aria-disabled", String(isBusy));
  send.textContent = isBusy ? "Saving" : "Save";
  find("entries").setAttribute("aria-busy", String(isBusy));
}

function tellFaults(faults) {
  for (const field of fields) field.tell(faults.get(field.name));
  fields.find(({ name }) => faults.has(name))?.focus();
}

const localFaults = () =>
  new Map(fields.filter(({ fault }) => fault !== undefined).map(({ name, fault }) => [name, fault]));

async function submit() {
  if (isSending) return;
  find("problem").textContent = "";
  const faults = localFaults();
  tellFaults(faults);
  if (faults.size > 0) return;
  busy(true);
  try {
    body = await makeBody();
  } catch {
    busy(false);
    find("problem").textContent = "Your browser could not encrypt this. Try another browser.";
    return;
  }
  await deliver();
}

async function makeBody() {
  const changed = fields.filter(({ change }) => change !== undefined);
  const digest = await digestOf(token);
  const values = await Promise.all(
    changed.map(async ({ name, change }) => [
      name,
      await encrypt(change, { field: name, link: digest, key: form.encryption_key }),
    ]),
  );
  return JSON.stringify({ token, version: form.version, values: Object.fromEntries(values) });
}

async function deliver() {
  busy(true);
  const answer = await ask("/submit", body);
  busy(false);
  if (ends.has(answer?.state)) return end(answer.state);
  if (answer?.state === "limited" || answer?.state === "invalid") return refuse(answer);
  retry = deliver;
  show("offline");
}

/** Back to the form, with what is to be changed or waited for. */
function refuse({ state, fields: faults = [], wait }) {
  if (performance.now() > endsAt) return end("expired");
  show("form");
  if (state === "limited")
    find("problem").textContent = `This was tried too often. Try again in ${Math.max(1, wait)} seconds.`;
  else find("problem").textContent = "This was not saved. Look at what you have entered.";
  tellFaults(new Map(faults.map(({ name, fault }) => [name, fault])));
}

find("entries").addEventListener("submit", (event) => {
  event.preventDefault();
  void submit();
});
find("retry").addEventListener("click", () => void (isSending || retry()));
// Another link that is opened in this tab changes the fragment alone.
addEventListener("hashchange", () => location.reload());
void open();
