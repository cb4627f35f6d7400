/** One CDP session that a client owns. */
export interface CdpSession<Owner> {
  readonly id: string;
  /** The target it is attached to; absent for a browser-level root. */
  readonly target?: string;
  readonly owner: Owner;
  readonly isRoot: boolean;
  readonly children: Set<CdpSession<Owner>>;
  readonly parent?: CdpSession<Owner>;
  /** The methods of commands sent on it and not yet answered, by their ids on the pipe. */
  readonly calls: Map<number, string>;
  /** Those of them whose answers its owner may not have. */
  readonly kept: Set<number>;
  /** The domains whose commands were sent on it. */
  readonly domains: Set<string>;
}

type NewSession<Owner> = Omit<CdpSession<Owner>, "children" | "calls" | "kept" | "domains">;

/** Knows which CDP session belongs to which client, and which session was attached by which. */
export class CdpSessions<Owner> {
  readonly #byId = new Map<string, CdpSession<Owner>>();
  readonly #children = new Map<Owner, number>();
  #count = 0;

  /** The number of sessions of all owners, without root sessions. */
  get count(): number {
    return this.#count;
  }

  countOf(owner: Owner): number {
    return this.#children.get(owner) ?? 0;
  }

  addRoot(root: { id: string; owner: Owner; target?: string }): CdpSession<Owner> {
    return this.#add({ ...root, isRoot: true });
  }

  addChild(parent: CdpSession<Owner>, child: { id: string; target: string }): void {
    const { owner } = parent;
    parent.children.add(this.#add({ ...child, owner, isRoot: false, parent }));
    this.#addToCount(owner, 1);
  }

  #add(added: NewSession<Owner>): CdpSession<Owner> {
    const session = {
      ...added,
      children: new Set<never>(),
      calls: new Map<number, string>(),
      kept: new Set<number>(),
      domains: new Set<string>(),
    };
    this.#byId.set(session.id, session);
    return session;
  }

  find(id: string): CdpSession<Owner> | undefined {
    return this.#byId.get(id);
  }

  attachedTo(target: string): Set<CdpSession<Owner>> {
    return new Set([...this.#byId.values()].filter((session) => session.target === target));
  }

  all(): Iterable<CdpSession<Owner>> {
    return this.#byId.values();
  }

  roots(): CdpSession<Owner>[] {
    return [...this.#byId.values()].filter((session) => session.isRoot);
  }

  /**
   * Forgets a session with all that were attached through it: Chromium ends those without an event of their
   * own.
   */
  remove(session: CdpSession<Owner>): Set<CdpSession<Owner>> {
    session.parent?.children.delete(session);
    const gone = new Set<CdpSession<Owner>>();
    const pending = [session];
    for (let next = pending.pop(); next; next = pending.pop()) {
      gone.add(next);
      this.#forget(next);
      pending.push(...next.children);
    }
    return gone;
  }

  #forget({ id, isRoot, owner }: CdpSession<Owner>): void {
    this.#byId.delete(id);
    if (isRoot) this.#children.delete(owner);
    else this.#addToCount(owner, -1);
  }

  #addToCount(owner: Owner, by: 1 | -1): void {
    this.#count += by;
    // A root goes first, with what its owner had.
    if (by > 0 || this.#children.has(owner)) this.#children.set(owner, this.countOf(owner) + by);
  }
}
