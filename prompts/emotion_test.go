package prompts

import "testing"

func TestEmotionOf(t *testing.T) {
	for _, c := range []struct {
		emoji, want string
	}{
		{"🙂", "happy"},
		{"😶", "neutral"},
		{"😲", "surprised"},
		{"😯", "surprised"},
		{"🙄", "confused"},
		{"😊", "happy"},
		{"😃", "happy"},
		{"😄", "happy"},
		{"😁", "happy"},
		{"❤️", "loving"},
		{"❤", "loving"},
		{"☺️", "happy"},
		{"☹️", "sad"},
		{"👍🏽", "happy"},
		{"💪🏿", "cool"},
		{"🤷🏻‍♀️", "confused"},
		{"😮‍💨", "surprised"},
		{"❤️‍🔥", "loving"},
		{"🦒", ""},
		{"a", ""},
		{"", ""},
		{"\ufe0f", ""},
		{"\xff", ""},
		{"🏽", ""},
	} {
		got, ok := EmotionOf(c.emoji)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("EmotionOf(%q) = %q, %v; want %q", c.emoji, got, ok, c.want)
		}
	}
}

func TestEmotionsOfProtocol(t *testing.T) {
	if n := len(Emotions()); n != 21 {
		t.Errorf("%d emotions, want 21", n)
	}
	seen := map[string]string{}
	for _, e := range emotions() {
		if got, ok := EmotionOf(EmojiOf(e.name)); !ok || got != e.name {
			t.Errorf("%s does not come back from its own emoji: %q", e.name, got)
		}
		for _, emoji := range append([]string{e.emoji}, e.others...) {
			if other, twice := seen[emoji]; twice {
				t.Errorf("%s is both %s and %s", emoji, other, e.name)
			}
			seen[emoji] = e.name
			if got, _ := EmotionOf(emoji + "\ufe0f"); got != e.name {
				t.Errorf("%s with a variation selector is %q, want %s", emoji, got, e.name)
			}
		}
	}
	if EmojiOf("hungry") != "" {
		t.Error("a name that no device knows has an emoji")
	}
}
