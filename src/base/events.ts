type Listener<Value> = (value: Value) => void;

/** Typed events of one object. A listener that throws stops neither the others nor the emitter. */
export class Events<Map extends object> {
  readonly #listeners = new globalThis.Map<keyof Map, Set<Listener<never>>>();

  constructor(private readonly onFault: (error: unknown) => void) {}

  on<Name extends keyof Map>(name: Name, listener: Listener<Map[Name]>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener as Listener<never>));
    return () => listeners.delete(listener as Listener<never>);
  }

  emit<Name extends keyof Map>(name: Name, value: Map[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        (listener as Listener<Map[Name]>)(value);
      } catch (error) {
        this.onFault(error);
      }
    }
  }
}
