package rules

import (
	"slices"
	"strings"

	"xiaozhi/providers"
)

// playSong plays a song, or any, where there is a tool for it.
func (r request) playSong(in intent) (providers.Delta, bool) {
	t, ok := find(r.tools, isPlayer)
	if !ok {
		return r.deviceTool()
	}
	song, name := original(in.slots["song"], r.said), ""
	if in.about == "radio" {
		song = r.lang.Pick("电台", "radio")
	}
	for _, candidate := range []string{"name", "song", "title", "query", "keyword"} {
		if t.schema.Properties[candidate].is("string") {
			name = candidate
			break
		}
	}
	if slices.ContainsFunc(t.schema.Required, func(p string) bool { return p != name || song == "" }) {
		return r.deviceTool()
	}
	if song == "" || name == "" {
		return r.call(t, nil)
	}
	return r.call(t, map[string]any{name: strings.TrimSpace(song)})
}

// isPlayer reports whether a tool begins to play music.
func isPlayer(t tool) bool {
	return t.has("play") && t.has("music", "song", "songs") && !t.has("list", "stop", "pause", "next")
}

// isSong reports whether something that is to be played may be a song.
func isSong(words string) bool {
	return !containsAny(" "+words+" ", []string{
		" game", " podcast", " audiobook", " episode", " questions ", " show ", " book ", " playlist ", " station ", " chess", " cards", " piano ", " guitar ", " football ", " tennis ", " with me ", " role ", " part ", " news ", " video", " movie ", " film ", " story", " joke",
		"什么", "哪", "故事", "笑话", "新闻", "天气", "游戏", "电影", "视频", "相声", "你", "戏", "播客", "有声书", "节目", "完", "时", "失败", "结束", "中", "不", "音量",
	})
}
