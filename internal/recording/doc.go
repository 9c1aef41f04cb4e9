// Package recording keeps the sound of turns: a file for each side of a turn, Ogg Opus with the packets as they came and
// went, and a row of the store that names it. It does not decide whose sound that is.
//
// # Files
//
// DEVICE/TALK/TURN-user.opus and TURN-reply.opus within the folder, for the owner only. DEVICE is the id of the device
// with signs that no file system minds. A file is written under another name, is on the disk, and gets its own name then;
// after that its row is written. So a row never names half a file. A file without a row is what a crash has left, or what
// was deleted from the store: it is deleted at start and every hour.
//
// # Concurrency
//
// Whoever hands sound over never waits. One goroutine writes, deletes and counts.
package recording
