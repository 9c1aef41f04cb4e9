package think

import (
	"testing"

	"xiaozhi/internal/text"
)

func TestActionWords(t *testing.T) {
	for _, c := range []struct{ name, description, language, want string }{
		{"self.lamp.turn_on", "", "en", "turn on the lamp"},
		{"self.audio_speaker.set_volume", "Set the volume", "en", "set the volume"},
		{"self.audio_speaker.set_volume", "设置音量。0到100", "zh", "设置音量"},
		{"self.audio_speaker.set_volume", "设置音频扬声器的输出音量大小到指定的数值", "zh", "set volume"},
		{"self.screen.set_theme", "Sets the theme", "zh", "set theme"},
		{"self.reboot", "", "en", "reboot"},
		{"open-door", "", "en", "open the door"},
		{"dance", "", "en", "dance"},
		{"...", "", "en", "..."},
		{"开灯", "", "zh", "开灯"},
	} {
		if got := ActionWords(c.name, c.description, text.Lang(c.language)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.language, c.name, got, c.want)
		}
	}
}
