/** Why a daemon does not start. Nothing in our code went wrong: it is said as it is, without a stack. */
export class CannotStart extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
    this.stack = message;
  }
}
