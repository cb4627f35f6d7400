import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { RawCdp } from "../../gateway/raw-cdp.js";

const red = Buffer.from(`%PDF-1.1
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 400]/Contents 4 0 R/Resources<<>>>>endobj
4 0 obj<</Length 26>>stream
1 0 0 rg 0 0 400 400 re f
endstream endobj
trailer<</Root 1 0 R>>
`);

export interface PdfSite {
  readonly origin: string;
  close(): Promise<void>;
}

/** A site with a red PDF, by itself at /red.pdf and in pages that embed it or have it in a frame. */
export async function openPdfSite(): Promise<PdfSite> {
  const pages: Readonly<Record<string, string>> = {
    "/embedded": "<embed src=/red.pdf type=application/pdf width=400 height=400>",
    "/framed": "<iframe src=/red.pdf width=400 height=400></iframe>",
  };
  const server = createServer((request, response) => {
    const isPdf = request.url === "/red.pdf";
    response
      .setHeader("content-type", isPdf ? "application/pdf" : "text/html")
      .end(isPdf ? red : `<!doctype html><title>site</title>${pages[request.url ?? ""] ?? ""}`);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => void server.close(resolve));
  };
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** How many pixels of a screenshot are red, counted by a page of the same browser. */
export async function countRed(cdp: RawCdp, png: string, session: string): Promise<number> {
  return Number(
    await cdp.evaluate(
      `(async () => {
    const image = await createImageBitmap(new Blob([Uint8Array.from(atob("${png}"), (sign) => sign.charCodeAt(0))]));
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const { data } = canvas.getImageData(0, 0, image.width, image.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at] > 240 && data[at + 1] < 20 && data[at + 2] < 20) count += 1;
    return count;
  })()`,
      session,
    ),
  );
}
