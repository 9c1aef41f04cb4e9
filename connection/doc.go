// Package connection is the side of the server that devices see: the OTA
// address they ask first, the WebSocket they talk over, and the address to which
// their cameras upload.
//
// A Server holds the set of live devices, keyed by Device-Id. Every connection
// has three goroutines of its own and nothing else touches its socket:
//
//   - run, the HTTP handler's goroutine: owns the context, decides how the
//     connection ends, closes the socket, waits for the others, returns last;
//   - the reader: the only caller of Read. It waits for nobody: events go to
//     the conversation's inbox, which never blocks;
//   - the writer: the only caller of Write. Control messages overtake audio.
//
// The conversation (a Talk) runs in a fourth, from the hello on.
//
// What a device must do and what it gets is written down in the device
// protocol; section numbers in comments here are of that document.
package connection
