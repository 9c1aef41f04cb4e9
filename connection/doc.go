// Package connection is the side of the server that devices see: the OTA
// address they ask first, the WebSocket they talk over, and the address to which
// their cameras upload.
//
// A Server holds the set of live devices, keyed by Device-Id. The handler of an
// upgrade starts the connection and returns, so that net/http frees what it
// holds for a request. From then on a connection has
//
//   - the reader: the only one who reads. It waits for nobody: events go to the
//     conversation's inbox, which never blocks;
//   - the conversation (a Talk), from the hello on;
//   - a writer while there is something to write, the only one who writes.
//     Control messages overtake audio;
//   - at its end, when its context ends: windDown, which decides how, closes the
//     socket, waits for the others, and gives the place in the server back.
//
// What a device must do and what it gets is written down in the device
// protocol; section numbers in comments here are of that document.
package connection
