// Package connection holds the sessions of devices, whatever carries them: hello,
// dialects, conversation, tools, what waits to be written, admission and the end.
//
// A [Registry] holds one [Session] for each connected device, by its Device-Id. A
// transport, such as package connection/websocket, reserves room, admits the
// device with its [Transport], and hands what it reads to [Session.Text] and
// [Session.Audio], where all messages are mapped to methods. A session has
//
//   - the reader, of the transport. It never waits: events go to the conversation's
//     queue;
//   - the conversation, from the hello on;
//   - a writer while there is something to write: control messages overtake sound;
//   - at its end, when its context ends, Session.close, which lets the others end in
//     order, waits for them, and gives the place in the registry back.
//
// The facts of the wire are in docs/protocol.md.
package connection
