// Package speak turns the segments of a reply into paced sound. A [Speaker] gets
// the sound of each segment from a synthesiser, one ahead of the one that is
// spoken, and cuts it into frames; a [Player] hands the frames to the device when
// they are due, and knows what was heard.
package speak
