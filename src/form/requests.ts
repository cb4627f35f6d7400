import { Type } from "typebox";

/** Longer than any token there is, so that a long one is unknown like any other that is wrong. */
const Token = Type.String({ maxLength: 4096 });

export const OpenBody = Type.Object({ token: Token }, { additionalProperties: false });

/** As many fields as an item may have. */
const mostFields = 32;

export const SubmitBody = Type.Object(
  {
    token: Token,
    version: Type.Integer({ minimum: 1 }),
    values: Type.Record(Type.String({ maxLength: 64 }), Type.String(), { maxProperties: mostFields }),
  },
  { additionalProperties: false },
);
