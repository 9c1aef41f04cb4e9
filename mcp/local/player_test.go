package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
)

func TestMusicTools(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"青花瓷.mp3", "Hey Jude.mp3"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	box := beside(t, standard(), local.Options{Music: local.NewMusic(dir)})
	for name, test := range map[string]struct {
		language, tool, arguments string
		action                    mcp.Action
		want                      string
	}{
		"by name":     {"zh", "play_music", `{"name":"青花瓷"}`, mcp.ActionTypeCallHandler, `{"funcName":"mcp_handler_play_music","args":{"action":"play","name":"青花瓷","song":"青花瓷.mp3","title":"青花瓷"}}`},
		"not there":   {"zh", "play_music", `{"name":"小苹果"}`, mcp.ActionTypeError, "没有找到《小苹果》"},
		"not there 2": {"en", "play_music", `{"name":"Yesterday"}`, mcp.ActionTypeError, `there is no song like "Yesterday"`},
		"stop":        {"zh", "stop_music", ``, mcp.ActionTypeCallHandler, `{"funcName":"mcp_handler_play_music","args":{"action":"stop"}}`},
		"pause":       {"zh", "pause_music", ``, mcp.ActionTypeCallHandler, `{"funcName":"mcp_handler_play_music","args":{"action":"pause"}}`},
		"resume":      {"zh", "resume_music", ``, mcp.ActionTypeCallHandler, `{"funcName":"mcp_handler_play_music","args":{"action":"resume"}}`},
		"next":        {"zh", "next_song", ``, mcp.ActionTypeCallHandler, `{"funcName":"mcp_handler_play_music","args":{"action":"next"}}`},
		"list":        {"zh", "list_music", ``, mcp.ActionTypeReqLLM, "共 2 首：Hey Jude、青花瓷"},
		"list, en":    {"en", "list_music", ``, mcp.ActionTypeReqLLM, "2 songs: Hey Jude, 青花瓷"},
	} {
		r := call(t, box, test.language, test.tool, test.arguments)
		if got := mcp.ResultText(r); r.Action != test.action || got != test.want {
			t.Errorf("%s: %s %s, want %s", name, r.Action, got, test.want)
		}
	}
	if r := call(t, box, "zh", "play_music", `{}`); r.Action != mcp.ActionTypeCallHandler || !strings.Contains(mcp.ResultText(r), `"song":"`) {
		t.Errorf("any song: %+v", r)
	}
}

func TestNoMusic(t *testing.T) {
	box := beside(t, nil, local.Options{Music: local.NewMusic(filepath.Join(t.TempDir(), "gone"))})
	for _, tool := range []string{"play_music", "list_music"} {
		if r := call(t, box, "zh", tool, ``); r.Action != mcp.ActionTypeError || r.Result != "音乐文件夹里没有音乐" {
			t.Errorf("%s: %+v", tool, r)
		}
	}
	player := device("device", nil, "music_player.search_and_play(song_name:string)")
	if got := offered(beside(t, player, local.Options{Music: local.NewMusic(t.TempDir())}), "play_music", "stop_music", "next_song"); got != "" {
		t.Errorf("beside a device's own player: %s", got)
	}
}

func TestManySongs(t *testing.T) {
	dir := t.TempDir()
	for i := range 60 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("song %02d.mp3", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := call(t, beside(t, nil, local.Options{Music: local.NewMusic(dir)}), "en", "list_music", ``)
	if got := mcp.ResultText(r); !strings.HasPrefix(got, "60 songs, the first 50 are: song 00, song 01, ") || !strings.HasSuffix(got, "song 49") {
		t.Errorf("%s", got)
	}
}

// stations are streams of which one does not play.
type stations struct{}

func (stations) CheckStation(_ context.Context, name string) error {
	if name == "Broken" {
		return errors.New("it does not answer")
	}
	return nil
}

func (stations) CheckAddress(_ context.Context, address string) error {
	if !strings.HasPrefix(address, "https://radio.example.org/") {
		return errors.New("not public")
	}
	return nil
}

// TestStations: radio stations are found by their names and by what people call any, and are tried before they are played.
func TestStations(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Hey Jude.mp3"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := local.Options{Music: local.NewMusic(dir, "Radio Six", "音乐之声", "Broken"), Streams: stations{}, URLs: true}
	box := beside(t, standard(), o)
	for _, test := range []struct{ language, tool, arguments, want string }{
		{"en", "play_music", `{"name":"radio six"}`, `"song":"station:Radio Six","title":"Radio Six"`},
		{"zh", "play_music", `{"name":"音乐之声"}`, `"song":"station:音乐之声"`},
		{"en", "play_music", `{"name":"the radio"}`, `"song":"station:Radio Six"`},
		{"zh", "play_music", `{"name":"广播"}`, `"song":"station:Radio Six"`},
		{"en", "play_music", `{"name":"hey jude"}`, `"song":"Hey Jude.mp3"`},
		{"en", "play_music", `{}`, `"song":"Hey Jude.mp3"`},
		{"en", "play_music", `{"name":"broken"}`, "Broken does not play at the moment"},
		{"en", "play_music", `{"url":"https://radio.example.org/live"}`, `"song":"url:https://radio.example.org/live","title":"radio.example.org"`},
		{"en", "play_music", `{"url":"http://192.168.1.1/"}`, "192.168.1.1 does not play at the moment"},
		{"zh", "play_music", `{"url":"file:///etc/passwd"}`, "需要一个音频流的网址（http 或 https）"},
		{"en", "list_music", `{}`, "1 songs: Hey Jude. Radio stations: Radio Six, 音乐之声, Broken"},
		{"zh", "list_music", `{}`, "共 1 首：Hey Jude。电台：Radio Six、音乐之声、Broken"},
	} {
		if r := call(t, box, test.language, test.tool, test.arguments); !strings.Contains(mcp.ResultText(r), test.want) {
			t.Errorf("%s %s: %s, want %s", test.tool, test.arguments, mcp.ResultText(r), test.want)
		}
	}
	for from, want := range map[string]string{"station:Radio Six": "音乐之声", "station:Broken": "Radio Six", "Hey Jude.mp3": "Hey Jude"} {
		if next, err := o.Music.Next(from); err != nil || next.Title != want {
			t.Errorf("after %s: %+v, %v", from, next, err)
		}
	}
	none := beside(t, nil, local.Options{Music: local.NewMusic(t.TempDir(), "Radio Six"), Streams: stations{}})
	if r := call(t, none, "en", "play_music", `{}`); !strings.Contains(mcp.ResultText(r), `"song":"station:Radio Six"`) {
		t.Errorf("no songs: %+v", r)
	}
	if r := call(t, none, "en", "list_music", `{}`); r.Result != "Radio stations: Radio Six" {
		t.Errorf("no songs: %+v", r)
	}
	for _, offer := range none.Offers() {
		if offer.Tool.Name == "play_music" && strings.Contains(string(offer.Tool.Schema), "url") {
			t.Errorf("addresses are not played: %s", offer.Tool.Schema)
		}
	}
}
