import { cards, padded, request, type XClient } from "./x-client.js";

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Opcodes of the core protocol, and of RandR 1.3 (randrproto). */
const core = { grabServer: 36, ungrabServer: 37, queryExtension: 98 } as const;
const randr = {
  queryVersion: 0,
  setScreenSize: 7,
  createMode: 16,
  addOutputMode: 18,
  setCrtcConfig: 21,
  resourcesCurrent: 25,
} as const;

const millimetres = (pixels: number): number => Math.round((pixels * 25.4) / 96);

/** The screen as Xvfb has it: one controller that shows one output. */
interface Screen {
  readonly opcode: number;
  readonly controller: number;
  readonly output: number;
  readonly configuredAt: number;
  /** The size of each mode. */
  readonly modes: ReadonlyMap<number, Size>;
}

/**
 * Gives a running X server's screen another size, at most the one it was started with. Throws where it
 * cannot.
 */
export async function setScreenSize(client: XClient, size: Size): Promise<void> {
  const screen = await screenOf(client);
  const mode = findMode(screen, size) ?? (await makeMode(client, screen, size));
  // The server serves nobody else meanwhile, so no client sees a screen without a mode.
  client.send(request(core.grabServer, 0));
  try {
    await showMode(client, screen, undefined);
    const [wide, high] = [millimetres(size.width), millimetres(size.height)];
    client.send(
      request(
        screen.opcode,
        randr.setScreenSize,
        cards(4, client.root),
        cards(2, size.width, size.height),
        cards(4, wide, high),
      ),
    );
    await showMode(client, screen, mode);
  } finally {
    client.send(request(core.ungrabServer, 0));
  }
}

async function screenOf(client: XClient): Promise<Screen> {
  const name = Buffer.from("RANDR");
  const found = await client.ask(request(core.queryExtension, 0, cards(2, name.length, 0), padded(name)));
  if (found[8] !== 1) throw new Error("the X server has no RandR");
  const opcode = found.readUInt8(9);
  await client.ask(request(opcode, randr.queryVersion, cards(4, 1, 3)));
  const resources = await client.ask(request(opcode, randr.resourcesCurrent, cards(4, client.root)));
  const [controllers, outputs, modes] = [16, 18, 20].map((at) => resources.readUInt16LE(at)) as [
    number,
    number,
    number,
  ];
  const outputsAt = 32 + 4 * controllers;
  return {
    opcode,
    configuredAt: resources.readUInt32LE(12),
    controller: resources.readUInt32LE(32),
    output: resources.readUInt32LE(outputsAt),
    modes: new Map(
      Array.from({ length: modes }, (_, at) => modeIn(resources, outputsAt + 4 * outputs + 32 * at)),
    ),
  };
}

const modeIn = (resources: Buffer, at: number): [number, Size] => [
  resources.readUInt32LE(at),
  { width: resources.readUInt16LE(at + 4), height: resources.readUInt16LE(at + 6) },
];

const findMode = ({ modes }: Screen, { width, height }: Size): number | undefined =>
  [...modes].find(([, mode]) => mode.width === width && mode.height === height)?.[0];

async function makeMode(
  client: XClient,
  { opcode, output }: Screen,
  { width, height }: Size,
): Promise<number> {
  const name = Buffer.from(`${width}x${height}`);
  // No picture is ever sent to a monitor, so the timings say only the size, at 60 Hz.
  const timings = [
    cards(2, width, height),
    cards(4, width * height * 60),
    cards(2, width, width, width, 0, height, height, height),
  ];
  const mode = [cards(4, 0), ...timings, cards(2, name.length), cards(4, 0), padded(name)];
  const made = await client.ask(request(opcode, randr.createMode, cards(4, client.root), ...mode));
  const id = made.readUInt32LE(8);
  client.send(request(opcode, randr.addOutputMode, cards(4, output, id)));
  return id;
}

async function showMode(
  client: XClient,
  { opcode, controller, output, configuredAt }: Screen,
  mode: number | undefined,
): Promise<void> {
  const outputs = mode === undefined ? [] : [output];
  const place = [cards(4, controller, 0, configuredAt), cards(2, 0, 0), cards(4, mode ?? 0), cards(2, 1, 0)];
  const answer = await client.ask(request(opcode, randr.setCrtcConfig, ...place, cards(4, ...outputs)));
  if (answer[1] !== 0) throw new Error(`the X server refused a size (${answer[1]})`);
}
