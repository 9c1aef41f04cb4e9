package prompts

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Neutral is the emotion of a face that shows none.
const Neutral = "neutral"

// emotion is one face that devices can show, its emoji, and other emoji that
// mean the same to it.
type emotion struct {
	name, emoji string
	others      []string
}

// emotions returns the 21 faces that every type of display knows
// (docs/protocol.md 3.3), each with the common emoji that come nearest.
func emotions() []emotion {
	return []emotion{
		{Neutral, "😶", []string{"😐", "😑", "🤖", "🫥", "😬", "🤐", "🫡"}},
		{"happy", "🙂", []string{"😊", "😃", "😄", "😁", "😀", "☺", "🤗", "🎉", "🥳", "👍", "👏", "🌞", "☀", "✨", "🎶", "🎵", "👋", "😺", "🤩", "🙌", "✅"}},
		{"laughing", "😆", []string{"😹", "😝"}},
		{"funny", "😂", []string{"🤣", "🙃"}},
		{"sad", "😔", []string{"😞", "🙁", "☹", "😟", "😕", "🥺", "😥", "😓", "💔", "🙏", "😩", "😣", "😖", "😫"}},
		{"angry", "😠", []string{"😡", "🤬", "😤", "👿", "💢"}},
		{"crying", "😭", []string{"😢", "😿", "🥲"}},
		{"loving", "😍", []string{"🥰", "❤", "💕", "💖", "💗", "💓", "💞", "💘", "😻", "🧡", "💛", "💚", "💙", "💜", "🩷", "♥"}},
		{"embarrassed", "😳", []string{"😅", "🫣", "🙈", "🤭"}},
		{"surprised", "😲", []string{"😯", "😮", "🤯"}},
		{"shocked", "😱", []string{"😨", "😰", "😧", "😦", "🙀"}},
		{"thinking", "🤔", []string{"🧐", "💭", "🤨", "💡", "🔍", "⏰"}},
		{"winking", "😉", []string{"👌"}},
		{"cool", "😎", []string{"🕶", "💪", "🔥", "🤠"}},
		{"relaxed", "😌", []string{"😇", "🧘", "🍵", "☕"}},
		{"delicious", "🤤", []string{"😋", "🍰", "🍜", "🍕", "🍎"}},
		{"kissy", "😘", []string{"😗", "😙", "😚", "💋"}},
		{"confident", "😏", []string{"🏆", "⭐", "🌟"}},
		{"sleepy", "😴", []string{"😪", "🥱", "💤", "🌙", "🛌"}},
		{"silly", "😜", []string{"😛", "🤪", "🤡"}},
		{"confused", "🙄", []string{"😵", "❓", "🤷", "😒", "🥴"}},
	}
}

// Emotions lists the names of the faces in the order of the protocol.
func Emotions() []string {
	var names []string
	for _, e := range emotions() {
		names = append(names, e.name)
	}
	return names
}

// EmotionOf names the face for one emoji. Skin tones and variation selectors do
// not matter; of a joined emoji the whole counts first, then its first part. ok
// is false where no face comes near.
func EmotionOf(emoji string) (name string, ok bool) {
	plain := strings.Map(dropModifier, emoji)
	first, _ := utf8.DecodeRuneInString(plain)
	if plain == "" || first == utf8.RuneError {
		return "", false
	}
	for _, wanted := range []string{plain, string(first)} {
		for _, e := range emotions() {
			if e.emoji == wanted || slices.Contains(e.others, wanted) {
				return e.name, true
			}
		}
	}
	return "", false
}

// EmojiOf returns the emoji of a face, or "" for a name that no device knows.
func EmojiOf(name string) string {
	for _, e := range emotions() {
		if e.name == name {
			return e.emoji
		}
	}
	return ""
}

// dropModifier drops variation selectors and skin tones.
func dropModifier(r rune) rune {
	if r == '\ufe0e' || r == '\ufe0f' || r >= 0x1f3fb && r <= 0x1f3ff {
		return -1
	}
	return r
}

// emojiList returns the value of {{emojiList}}: the emoji of all faces.
func emojiList() string {
	var b strings.Builder
	for i, e := range emotions() {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(e.emoji)
	}
	return b.String()
}
