import { Type } from "typebox";
import { text, textOr } from "../kinds.js";

const email = { pattern: "^[^@\\s]+@[^@\\s]+\\.[^@\\s.]+$", form: "an e-mail address" } as const;

export const accessSection = Type.Object({
  root_id: text("who answers for what is done with the root key: the id in `created_by` of its keys")("root"),
  root_email: text("the e-mail address of whoever answers for the root key")("root@remuda.invalid", email),
  root_name: textOr("the name of whoever answers for the root key")("none is told"),
});
