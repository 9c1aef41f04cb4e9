package iflytek

import (
	"strings"
	"unicode"
)

// superhuman says whether a voice is one of the super-humanoid ones: those have their
// generation in front of their name, and a way of speaking behind it.
func superhuman(voice string) bool {
	return strings.HasPrefix(voice, "x") && (strings.HasSuffix(voice, "_oral") || strings.HasSuffix(voice, "_flow") || strings.HasSuffix(voice, "_emo"))
}

// plain is a text without what the services take for markup: brackets, and signs that
// only lay it out.
func plain(words string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '[':
			return '('
		case r == ']':
			return ')'
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, words)
}

// level turns a speed, of which 1 is normal, into the services' 0 to 100.
func level(speed float64) int {
	switch {
	case speed <= 0:
		return 50
	case speed >= 1: // 100 is twice as fast
		return min(100, int(50*speed))
	}
	return max(0, int(100*speed-50)) // 0 is half as fast
}

// onlineBusiness holds how the online voices are to speak.
type onlineBusiness struct {
	Encoding string `json:"aue"`
	Format   string `json:"auf"`
	Voice    string `json:"vcn"`
	Speed    int    `json:"speed"`
	Volume   int    `json:"volume"`
	Pitch    int    `json:"pitch"`
	Text     string `json:"tte"`
}

// oralParameter holds how the super-humanoid voices are to speak.
type oralParameter struct {
	Oral *oralManner `json:"oral,omitempty"`
	TTS  struct {
		Voice  string    `json:"vcn"`
		Speed  int       `json:"speed"`
		Volume int       `json:"volume"`
		Pitch  int       `json:"pitch"`
		BGS    int       `json:"bgs"`
		Reg    int       `json:"reg"`
		Rdn    int       `json:"rdn"`
		Rhy    int       `json:"rhy"`
		Audio  oralAudio `json:"audio"`
	} `json:"tts"`
}

// oralManner sets how much a voice hesitates, breathes and repeats itself.
type oralManner struct {
	Level  string `json:"oral_level"`
	Assist int    `json:"spark_assist"`
	Split  int    `json:"stop_split"`
	Remain int    `json:"remain"`
}

type oralAudio struct {
	Encoding string `json:"encoding"`
	Rate     int    `json:"sample_rate"`
	Channels int    `json:"channels"`
	Depth    int    `json:"bit_depth"`
	Frame    int    `json:"frame_size"`
}
