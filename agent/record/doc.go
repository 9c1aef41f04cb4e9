// Package record writes down a conversation so that it can be played again: all
// that came to it (what the device did, what the engines and tools gave, and
// when) and all that it sent. Package replay below it plays a recording under a
// fake clock and gets the same messages and sound (docs/behaviours.md 45).
//
// # What a recording holds
//
// It is a text of lines, each a JSON object (Entry) with its time t in
// nanoseconds since the conversation was made and one other member that says
// what happened. The first line is begin, with the version of the format (1),
// the session and the settings; the last of a whole recording is end. Packets
// are Opus and sound is PCM of 16 bits, little endian, both in base64. What an
// engine did is told in steps that belong together by their number n.
//
// So a recording holds all that was said, by both sides, and how it sounded.
// Recorder keeps its files from everybody but the owner.
//
// # What it does not hold
//
// Of a request to a model: pictures, and what tools are but their names. What
// somebody outside has the conversation do (Say and the like of remote.Device) is
// not there. Jobs, timers and notices that wait from an earlier connection are
// told by one mark only (Memory.Waiting). Sound caches and voice levels, which
// conversations share, are made anew for each one that is recorded.
package record
