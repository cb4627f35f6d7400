import { completed, type FillCase, login, refused } from "./fill-case.js";

const userAndPassword = [
  ["#user", "secret-1"],
  ["#password", "secret-2"],
] as const;
const both = { user: "secret-1", password: "secret-2" };

/** A framework that keeps a copy of the value and hears of a change only where that differs, as React. */
const tracked = (id: string, onChange: string): string => `<script>{
  const input = document.getElementById("${id}");
  const { get, set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
  let copy = "";
  Object.defineProperty(input, "value", {
    configurable: true, get() { return get.call(this); }, set(value) { copy = value; set.call(this, value); },
  });
  document.addEventListener("input", ({ target }) => {
    if (get.call(target) === copy) return;
    copy = get.call(target);
    (${onChange})(target, copy);
  });
}</script>`;

/** Inputs of all kinds, as forms have them. */
export const fieldPages: readonly FillCase[] = [
  completed("a login form", login, { fields: userAndPassword, values: both }),
  completed(
    "email, search, tel and url",
    `<input id="a" type="email"><input id="b" type="search"><input id="c" type="tel"><input id="d" type="url">`,
    {
      fields: [
        ["#a", "a@b.example"],
        ["#b", "secret-2"],
        ["#c", "+1 555"],
        ["#d", "https://secret.example/"],
      ],
      values: { a: "a@b.example", b: "secret-2", c: "+1 555", d: "https://secret.example/" },
    },
  ),
  completed("a number", `<input id="a" type="number">`, { fields: [["#a", "0042"]], values: { a: "0042" } }),
  completed("a text in a number", `<input id="a" type="number">`, {
    fields: [["#a", "secret-1"]],
    status: "unknown",
    outcomes: ["unknown execution_failed"],
    values: {},
  }),
  completed("lines in a single line", `<input id="a">`, {
    fields: [["#a", "one\ntwo"]],
    status: "unknown",
    outcomes: ["unknown execution_failed"],
    values: { a: "onetwo" },
  }),
  completed("lines in a textarea", `<textarea id="a"></textarea>`, {
    fields: [["#a", "one\ntwo"]],
    values: { a: "one\ntwo" },
  }),
  completed("more than maxlength lets one type", `<input id="a" maxlength="4">`, {
    fields: [["#a", "secret-1"]],
    values: { a: "secret-1" },
  }),
  completed(
    "a select, by its option's value",
    `<select id="a"><option value="1">One<option value="2">Two</select>`,
    { fields: [["#a", "2"]], values: { a: "2" } },
  ),
  completed(
    "a select whose page hears of it",
    `<select id="a"><option value=""><option value="2">Two</select><input id="b">
      <script>a.onchange = () => { b.value = "heard"; }</script>`,
    { fields: [["#a", "2"]], values: { a: "2", b: "heard" } },
  ),
  refused("a select without the option", `${login}<select id="a"><option value="1">2</select>`, {
    selector: "",
    code: "",
    fields: [
      ["#user", "secret-1"],
      ["#a", "2"],
    ],
    outcomes: ["not_attempted", "failed option_not_found"],
    values: { a: "1" },
  }),
  refused(
    "a select whose option is disabled with its group",
    `<select id="a"><option value="1"><optgroup disabled><option value="2"></optgroup></select>`,
    { selector: "", code: "option_not_found", fields: [["#a", "2"]], values: { a: "1" } },
  ),
  completed(
    "an input that a framework controls",
    `<input id="a"><input id="b">${tracked("a", "(target, value) => { b.value = value.length; }")}`,
    { fields: [["#a", "secret-1"]], values: { a: "secret-1", b: "8" } },
  ),
  completed(
    "a framework that writes the value back",
    `<input id="a">${tracked("a", "(target, value) => { target.value = value; }")}`,
    { fields: [["#a", "secret-1"]], values: { a: "secret-1" } },
  ),
  completed("a mask", `<input id="a" oninput="this.value = this.value.replace(/(.{4})(?=.)/g, '$1 ')">`, {
    fields: [["#a", "12345678"]],
    values: { a: "1234 5678" },
  }),
  completed("a framework that refuses the value", `<input id="a" oninput="this.value = ''">`, {
    fields: [["#a", "secret-1"]],
    status: "unknown",
    outcomes: ["unknown execution_failed"],
    values: {},
  }),
  completed("a container with one input", `<label id="l">Name <input id="a"><input type="hidden"></label>`, {
    fields: [["#l", "secret-1"]],
    values: { a: "secret-1" },
  }),
  refused("a container with two inputs", `<div id="l"><input><textarea></textarea></div>`, {
    selector: "#l",
    code: "ambiguous_selector",
  }),
  refused("a container with none", `<div id="l"><input disabled><input type="checkbox" value=""></div>`, {
    selector: "#l",
    code: "element_not_editable",
  }),
  refused("two matches", login, { selector: "input", code: "ambiguous_selector" }),
  refused("two matches of which one can be edited", `<input class="a" disabled><input class="a">`, {
    selector: ".a",
    code: "ambiguous_selector",
  }),
  refused("no match for the second field", login, {
    selector: "",
    code: "",
    fields: [
      ["#user", "secret-1"],
      ["#pass", "secret-2"],
    ],
    outcomes: ["not_attempted", "failed element_not_found"],
  }),
  refused("two fields for one element", login, {
    selector: "",
    code: "",
    fields: [
      ["#user", "secret-1"],
      ["[autocomplete=username]", "secret-2"],
    ],
    outcomes: ["not_attempted", "failed ambiguous_selector"],
  }),
  ...[
    ["disabled", `<input id="a" disabled>`],
    ["in a disabled fieldset", `<fieldset disabled><input id="a"></fieldset>`],
    ["read-only", `<input id="a" readonly>`],
    ["not displayed", `<input id="a" style="display: none">`],
    ["below something that is not displayed", `<p style="display: none"><input id="a"></p>`],
    ["hidden", `<input id="a" style="visibility: hidden">`],
    ["of no size", `<input id="a" style="width: 0; padding: 0; border: 0">`],
    ["a checkbox", `<input id="a" type="checkbox" value="">`],
    ["a file", `<input id="a" type="file">`],
    ["a hidden input", `<input id="a" type="hidden">`],
    ["a button", `<input id="a" type="submit" value="">`],
    ["no input at all", `<p id="a" contenteditable>text</p>`],
  ].map(([name = "", body = ""]) => refused(name, body, { selector: "#a", code: "element_not_editable" })),
];
