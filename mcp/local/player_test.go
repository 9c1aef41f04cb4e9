package local_test

import (
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
