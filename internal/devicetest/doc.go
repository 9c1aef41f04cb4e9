// Package devicetest is a strict simulated speaker: it talks to a server as
// the ESP32 firmware does, over a real socket or over a pipe inside a synctest
// bubble, and writes down every breach of the wire protocol that it sees.
//
// It does not import testing, so that programs can use it too. References such
// as "3.2.4" in this package are to the sections of docs/protocol.md.
//
// # Concurrency
//
// A [Device] owns two goroutines. The receiver is the only caller of the socket's
// read side: it stamps each message, judges sound by the device's present
// state, and hands text to the main task. The main task alone changes the
// device's state: it applies messages one after the other, runs tools (and is
// frozen by them, as the firmware is), and performs what the user of this package
// asks for. [Device.Close] ends both and waits for them. What the two share is the
// body, under one lock; its parts (player, loudspeaker, microphone, replyCheck)
// look at no clock and have no lock, so that they are tested alone.
package devicetest
