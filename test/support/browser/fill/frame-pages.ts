import { changed, completed, type FillCase, login, refused } from "./fill-case.js";

const inner = `<form action="/submitted"><input id="password" type="password"></form>`;
const outer = `<input id="user">`;
const userAndPassword = [
  ["#user", "secret-1"],
  ["#password", "secret-2"],
] as const;
const both = { user: "secret-1", password: "secret-2" };
const shadowed = (mode: string): string => `<x-login></x-login><script>
  customElements.define("x-login", class extends HTMLElement {
    connectedCallback() { this.attachShadow({ mode: "${mode}" }).innerHTML = '<input id="user">'; }
  });
</script>`;

const nested = `<x-outer></x-outer>${shadowed("open")}<script>
  customElements.define("x-outer", class extends HTMLElement {
    connectedCallback() { this.attachShadow({ mode: "open" }).innerHTML = "<x-inner></x-inner>"; }
  });
  customElements.define("x-inner", class extends HTMLElement {
    connectedCallback() { this.attachShadow({ mode: "open" }).innerHTML = '<input id="deep">'; }
  });
</script>`;

/** Frames and shadow roots. */
export const framePages: readonly FillCase[] = [
  completed("a frame of the same origin", `${outer}<iframe src="{here}/inner"></iframe>`, {
    others: { "/inner": inner },
    fields: userAndPassword,
    values: both,
  }),
  completed("a frame of another origin", `${outer}<iframe src="{other}/inner"></iframe>`, {
    others: { "/inner": inner },
    fields: userAndPassword,
    values: both,
  }),
  completed("a frame in a frame of another origin", `${outer}<iframe src="{other}/middle"></iframe>`, {
    others: { "/middle": `<iframe src="{here}/inner"></iframe>`, "/inner": inner },
    fields: userAndPassword,
    values: both,
  }),
  completed("a srcdoc frame", `${outer}<iframe srcdoc='${inner}'></iframe>`, {
    fields: userAndPassword,
    values: both,
  }),
  completed("a sandboxed frame", `${outer}<iframe sandbox="allow-scripts" src="{here}/inner"></iframe>`, {
    others: { "/inner": inner },
    fields: userAndPassword,
    values: both,
  }),
  refused("matches in two frames", `${login}<iframe src="{other}/inner"></iframe>`, {
    others: { "/inner": inner },
    selector: "#password",
    code: "ambiguous_selector",
  }),
  refused("a frame that is not displayed", `<iframe style="display: none" src="{here}/inner"></iframe>`, {
    others: { "/inner": inner },
    selector: "#password",
    code: "element_not_editable",
  }),
  completed("an open shadow root", shadowed("open"), {
    fields: [["#user", "secret-1"]],
    values: { user: "secret-1" },
  }),
  completed("a custom element with one input", shadowed("open"), {
    fields: [["x-login", "secret-1"]],
    values: { user: "secret-1" },
  }),
  refused("a closed shadow root", shadowed("closed"), { selector: "#user", code: "element_not_found" }),
  completed("a shadow root in a shadow root", nested, {
    fields: [["#deep", "secret-1"]],
    values: { deep: "secret-1" },
  }),
  completed("a selector across open shadow roots", nested, {
    fields: [
      ["body x-login > input", "secret-1"],
      ["x-outer #deep, x-none input", "secret-2"],
    ],
    values: { user: "secret-1", deep: "secret-2" },
  }),
  refused("a selector across shadow roots that two match", nested, {
    selector: "body input",
    code: "ambiguous_selector",
  }),
  refused("a selector whose parent is further up", nested, {
    selector: "x-outer > #deep",
    code: "element_not_found",
  }),
  refused("a selector into a closed shadow root", shadowed("closed"), {
    selector: "x-login input",
    code: "element_not_found",
  }),
  changed("a frame that goes elsewhere", `<iframe id="f" src="{here}/inner"></iframe>`, {
    others: { "/inner": login, "/elsewhere": login },
    beforeWrite: `new Promise((resolve) => { f.onload = resolve; f.src = "/elsewhere"; })`,
  }),
  changed("a frame of another origin that goes elsewhere", `<iframe id="f" src="{other}/inner"></iframe>`, {
    others: { "/inner": login, "/elsewhere": login },
    beforeWrite: `new Promise((resolve) => { f.onload = resolve; f.src = "{other}/elsewhere"; })`,
  }),
  changed("a frame that goes from one origin to another", `<iframe id="f" src="{here}/inner"></iframe>`, {
    others: { "/inner": login, "/elsewhere": login },
    beforeWrite: `new Promise((resolve) => { f.onload = resolve; f.src = "{other}/elsewhere"; })`,
  }),
  changed("a frame that is replaced by its like", `<iframe id="f" src="{here}/inner"></iframe>`, {
    others: { "/inner": login },
    beforeWrite: `new Promise((resolve) => { const next = f.cloneNode(); next.onload = resolve; f.replaceWith(next); })`,
  }),
  changed(
    "a frame that is moved, and so is loaded anew",
    `<iframe id="f" src="{here}/inner"></iframe><p id="p"></p>`,
    {
      others: { "/inner": login },
      beforeWrite: `new Promise((resolve) => { f.onload = resolve; p.append(f); })`,
    },
  ),
  changed("a frame that the page around it writes anew", `<iframe id="f" src="{here}/inner"></iframe>`, {
    others: { "/inner": login },
    beforeWrite: `f.contentDocument.open(), f.contentDocument.write(${JSON.stringify(login)}), f.contentDocument.close()`,
  }),
  changed("a frame that is given another text", `<iframe id="f" srcdoc='${login}'></iframe>`, {
    beforeWrite: `new Promise((resolve) => { f.onload = resolve; f.srcdoc = ${JSON.stringify(login)}; })`,
  }),
  changed("a frame that goes on to its opaque like", `<iframe id="f" src="{here}/inner"></iframe>`, {
    others: { "/inner": login },
    beforeWrite: `new Promise((resolve) => { f.onload = resolve; f.sandbox = "allow-scripts"; f.src = "{here}/inner"; })`,
  }),
  changed("inputs that the page around takes out of a frame", `<iframe id="f" src="{here}/inner"></iframe>`, {
    others: { "/inner": login },
    beforeWrite: `document.body.append(f.contentDocument.forms[0])`,
  }),
  changed("a frame that is taken away", `<iframe id="f" src="{other}/inner"></iframe>`, {
    others: { "/inner": login },
    beforeWrite: `f.remove()`,
  }),
];
