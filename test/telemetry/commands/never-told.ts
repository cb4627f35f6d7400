const clientClock = "when the client says that it was, by a clock of its own";
const typed = "it names the character that was typed";
const dragged = "it is what was dragged, or where that came from";
const filledIn = "it is what was filled in";

/** Arguments of reported commands of which no event says anything. */
export const neverTold: Readonly<Record<string, string>> = {
  "Autofill.trigger.address.fields.name": "a text of the client's own",
  "Autofill.trigger.address.fields.value": filledIn,
  "Autofill.trigger.card.number": filledIn,
  "Autofill.trigger.card.name": filledIn,
  "Autofill.trigger.card.expiryMonth": filledIn,
  "Autofill.trigger.card.expiryYear": filledIn,
  "Autofill.trigger.card.cvc": filledIn,
  "Input.dispatchDragEvent.data.items.data": dragged,
  "Input.dispatchDragEvent.data.items.title": dragged,
  "Input.dispatchDragEvent.data.items.baseURL": dragged,
  "Input.dispatchKeyEvent.timestamp": clientClock,
  "Input.dispatchKeyEvent.unmodifiedText": typed,
  "Input.dispatchKeyEvent.keyIdentifier": typed,
  "Input.dispatchKeyEvent.code": typed,
  "Input.dispatchKeyEvent.windowsVirtualKeyCode": typed,
  "Input.dispatchKeyEvent.nativeVirtualKeyCode": typed,
  "Input.dispatchMouseEvent.timestamp": clientClock,
  "Input.dispatchTouchEvent.timestamp": clientClock,
  "Input.dispatchTouchEvent.touchPoints.id": "it tells fingers apart, of which one is told",
  "Input.emulateTouchFromMouseEvent.timestamp": clientClock,
  "Input.synthesizeScrollGesture.interactionMarkerName": "a text of the client's own",
};
