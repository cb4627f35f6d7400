/** A part as a test writes it; `type` and `filename` are sent where they are given. */
export interface SentPart {
  readonly name: string;
  readonly content: string | Buffer;
  readonly filename?: string;
  readonly type?: string;
}

export const field = (name: string, content: string): SentPart => ({ name, content });
export const file = (name: string, content: string | Buffer): SentPart => ({
  name,
  content,
  filename: `${name}.zip`,
  type: "application/octet-stream",
});

export const boundary = "----remuda-test-boundary";
export const multipartType = `multipart/form-data; boundary=${boundary}`;

const headOf = ({ name, filename, type }: SentPart): string =>
  `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${filename === undefined ? "" : `; filename="${filename}"`}\r\n` +
  `${type === undefined ? "" : `content-type: ${type}\r\n`}\r\n`;

/** The body of a request, closed as it has to be. */
export const multipartBody = (parts: readonly SentPart[]): Buffer =>
  Buffer.concat([
    ...parts.flatMap((part) => [Buffer.from(headOf(part)), Buffer.from(part.content), Buffer.from("\r\n")]),
    Buffer.from(`--${boundary}--\r\n`),
  ]);
