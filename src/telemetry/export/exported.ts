/** Whose events are exported, as every record says. */
export interface ExportedSession {
  readonly session: string;
  readonly lease: string;
  readonly project: string;
  /** Absent for sessions on demand. */
  readonly pool?: { readonly id: string; readonly name?: string | undefined } | undefined;
  readonly region: string;
  /** The node that exports; absent where a control does. */
  readonly node?: string | undefined;
}

export interface ExportedEvent {
  /** The JSON of a `TelemetryEvent`. */
  readonly text: string;
  /** Has to be found out first; the same for all events of a lease. */
  readonly of: Promise<ExportedSession>;
}
