import { changed, completed, type FillCase, login } from "./fill-case.js";

const userAndPassword = [
  ["#user", "secret-1"],
  ["#password", "secret-2"],
] as const;
const both = { user: "secret-1", password: "secret-2" };
const first = { status: "failed", values: { user: "secret-1" } } as const;
const secondFails = { ...first, outcomes: ["filled", "failed target_changed"] };

/** Pages that change while they are filled, or reach for what is not theirs. */
export const hostilePages: readonly FillCase[] = [
  changed("an input that is replaced by its like", login, {
    beforeWrite: `user.replaceWith(user.cloneNode()), true`,
  }),
  changed("an input that is taken away", login, { beforeWrite: `user.remove()` }),
  changed("an input that is disabled", login, { beforeWrite: `user.disabled = true` }),
  changed("an input that becomes a file", login, { beforeWrite: `user.type = "file"` }),
  changed("an input that is hidden", login, { beforeWrite: `user.hidden = true` }),
  changed("another fragment", login, { beforeWrite: `location.hash = "other"` }),
  changed("another address without a navigation", login, {
    beforeWrite: `history.replaceState(0, "", "/other")`,
  }),
  changed("a redirect on the same origin", login, {
    others: { "/next": login },
    beforeWrite: `location.href = "/next", 0`,
    until: `location.pathname === "/next" && document.readyState === "complete"`,
  }),
  changed("a redirect to another origin", login, {
    others: { "/next": login },
    beforeWrite: `location.href = "{other}/next", 0`,
    until: `location.href === "{other}/next" && document.readyState === "complete"`,
  }),
  changed("a page that is written anew", login, {
    beforeWrite: `document.body.innerHTML = ${JSON.stringify(login)}`,
  }),
  changed("a page that opens its document again", login, {
    beforeWrite: `document.open(), document.write(${JSON.stringify(login)}), document.close()`,
  }),
  changed("a page that is replaced by what a javascript: address gives", login, {
    beforeWrite: `location.href = "javascript:" + ${JSON.stringify(JSON.stringify(login.replaceAll("\n", "")))} + ".replace('form', 'form id=anew')", 0`,
    until: `document.getElementById("anew") !== null`,
  }),
  changed("a page that goes on to a blob of its own origin", login, {
    beforeWrite: `location.href = URL.createObjectURL(new Blob([${JSON.stringify(login)}], { type: "text/html" })), 0`,
    until: `location.protocol === "blob:" && document.readyState === "complete"`,
  }),
  completed(
    "a handler that replaces the next input",
    `${login}<script>
    user.oninput = () => password.replaceWith(password.cloneNode());
  </script>`,
    { fields: userAndPassword, ...secondFails },
  ),
  completed(
    "a handler that goes to another address",
    `${login}<script>
    user.onchange = () => history.pushState(0, "", "/step-2");
  </script>`,
    { fields: userAndPassword, ...secondFails },
  ),
  completed(
    "a step that goes away once it is filled",
    `${login}<script>
    user.oninput = () => { user.hidden = true; };
  </script>`,
    { fields: userAndPassword, values: both },
  ),
  completed(
    "a handler that takes its own input away",
    `${login}<script>user.oninput = () => user.remove();</script>`,
    {
      fields: userAndPassword,
      status: "unknown",
      outcomes: ["unknown target_changed", "not_attempted"],
      values: {},
    },
  ),
  completed(
    "a handler that throws",
    `${login}<script>user.oninput = () => { throw new Error("no"); };</script>`,
    { fields: userAndPassword, values: both },
  ),
  completed(
    "a handler that goes on for long",
    `${login}<script>
    user.oninput = () => { const end = performance.now() + 6000; while (performance.now() < end); };
  </script>`,
    {
      fields: userAndPassword,
      timeoutMs: 3000,
      limitsEach: true,
      status: "unknown",
      outcomes: ["unknown timeout", "not_attempted"],
      values: { user: "secret-1" },
    },
  ),
  completed(
    "a code whose page goes on by itself",
    `<input id="code" autocomplete="one-time-code" maxlength="6">
    <script>code.oninput = () => { location.href = "/welcome"; }</script>`,
    {
      fields: [["#code", "123456"]],
      others: { "/welcome": "welcome" },
      until: `location.pathname === "/welcome" && document.readyState === "complete"`,
      values: {},
    },
  ),
  completed(
    "thieves of the focus",
    `<input id="thief">${login}<script>
    for (const input of document.querySelectorAll("input")) {
      input.onfocus = () => thief.focus();
      input.onkeydown = input.onkeypress = () => thief.focus();
    }
    setInterval(() => thief.focus(), 1);
    thief.focus();
  </script>`,
    { fields: userAndPassword, values: both },
  ),
  completed(
    "names of the form that stand for its properties",
    `<form name="querySelectorAll" id="f">
    <input name="querySelectorAll" id="user"><input name="isConnected" id="password" type="password">
    <input name="shadowRoot"><input name="ownerDocument"><input name="matches"><input name="dispatchEvent"></form>
    <img name="querySelector"><img name="defaultView"><img name="documentElement">`,
    {
      fields: [
        ["#f > :first-child", "secret-1"],
        ["#password", "secret-2"],
      ],
      values: both,
    },
  ),
  completed(
    "prototypes that the page has changed",
    `${login}<input id="log"><script>
    const note = (what) => { log.value += what; };
    for (const name of ["value", "isConnected", "ownerDocument"]) {
      const type = name === "value" ? HTMLInputElement : Node;
      Object.defineProperty(type.prototype, name, { get: () => note("get"), set: () => note("set") });
    }
    for (const name of ["querySelectorAll", "matches", "dispatchEvent"]) Element.prototype[name] = () => note(name);
    Document.prototype.querySelectorAll = Array.prototype.find = Array.prototype.map = () => note("all");
    Function.prototype.call = Function.prototype.apply = () => note("call");
  </script>`,
    { fields: userAndPassword, values: both },
  ),
  completed(
    "a page without scripts of its own, by its policy",
    `<meta http-equiv="content-security-policy" content="default-src 'none'">${login}`,
    { fields: userAndPassword, values: both },
  ),
  completed(
    "inputs that come and go around it",
    `${login}<p id="place"></p><script>
    let count = 0;
    setInterval(() => { place.innerHTML = '<input class="c' + (count += 1) + '">'; }, 1);
  </script>`,
    { fields: userAndPassword, values: both },
  ),
];
