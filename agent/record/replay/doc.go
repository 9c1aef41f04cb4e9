// Package replay plays a recording of package record again: a conversation with
// engines that give what they gave, when they gave it, and a device that does
// what it did. It is meant for a fake clock (testing/synctest), where a quarter
// of an hour takes a moment.
//
// What the conversation sends is compared with what it sent: messages and
// packets byte for byte and in their order, and their times. The voice's messages
// (start, emotion, sentence, stop), all other messages and the packets are held
// to one another by their times only: they come from different goroutines. Words
// of the system prompt and descriptions of tools are not compared, for the texts
// may have changed. The bytes of packets are not where another Opus library is at
// work than the one that was recorded, or where voices are brought to one
// loudness (SameSound): then their number, turns and times are.
//
// What cannot be exact: a recording of a real talk holds the delays of its
// machine. The replay has none, so the device's next act may come on the other
// side of a frame that was due in the same millisecond; and where the machine was
// so late that the sound stalled, the replay has no stall, so that the packets
// around it (a soft end, a soft beginning) are others. Frames that the
// conversation dropped, because they came faster than it could take them, are
// not dropped again. Random numbers do not matter: ids of sessions and calls come
// from the recording, and what tools pick is in their results.
package replay
