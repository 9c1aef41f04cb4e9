package local

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"xiaozhi/mcp"
)

// playing are the tools for music of the server's own folder.
func (s *Source) playing() []entry {
	if s.music == nil {
		return nil
	}
	control := func(action mcp.MusicAction) Handler {
		return func(context.Context, map[string]any) mcp.ActionResponse {
			return handOver(mcp.HandlerPlayMusic, mcp.MusicArgs{Action: action})
		}
	}
	return []entry{
		{
			name: "play_music", kind: mcp.Query, handler: s.playMusic, when: lacksPlayer,
			zh: "播放服务器上的音乐：按歌名、歌手找，没有说就随便放一首。",
			en: "Plays music from the server's folder, by title or artist, or any if none is named.",
			schema: `{"type":"object","properties":{"name":{"type":"string","maxLength":200,` +
				`"description":"歌名或歌手，可省略 / title or artist, may be left out"}}}`,
		},
		{
			name: "list_music", kind: mcp.Query, handler: s.listMusic, readOnly: true, when: lacksPlayer,
			zh:     "列出服务器上有哪些音乐。",
			en:     "Lists the music in the server's folder.",
			schema: noArguments,
		},
		{
			name: "stop_music", kind: mcp.Query, handler: control(mcp.MusicStop), when: lacksPlayer,
			zh: "停止播放音乐。", en: "Stops the music.", schema: noArguments,
		},
		{
			name: "pause_music", kind: mcp.Query, handler: control(mcp.MusicPause), when: lacksPlayer,
			zh: "暂停音乐。", en: "Pauses the music.", schema: noArguments,
		},
		{
			name: "resume_music", kind: mcp.Query, handler: control(mcp.MusicResume), when: lacksPlayer,
			zh: "继续播放音乐。", en: "Goes on with the music.", schema: noArguments,
		},
		{
			name: "next_song", kind: mcp.Query, handler: control(mcp.MusicNext), when: lacksPlayer,
			zh: "换下一首。", en: "Plays the next song.", schema: noArguments,
		},
	}
}

// lacksPlayer is when music is offered: the device plays none by itself.
func lacksPlayer(tools []mcp.Tool) bool {
	for _, tool := range tools {
		t, ok := readTool(tool, "music", "song")
		if ok && t.has("play", "search") {
			return false
		}
	}
	return true
}

// playMusic finds the song; the conversation plays it.
func (s *Source) playMusic(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	name := strings.TrimSpace(textArg(arguments, "name"))
	song, err := s.music.Find(name)
	switch {
	case errors.Is(err, ErrNoSong) && name != "":
		return fail(fmt.Sprintf(say(ctx, "没有找到《%s》", "there is no song like %q"), name))
	case err != nil:
		return s.noMusic(ctx, err)
	}
	return handOver(mcp.HandlerPlayMusic, mcp.MusicArgs{Action: mcp.MusicPlay, Name: name, Song: song.ID, Title: song.Title})
}

// noMusic says that there is none, or why it cannot be read.
func (s *Source) noMusic(ctx context.Context, err error) mcp.ActionResponse {
	if err != nil && !errors.Is(err, ErrNoSong) {
		s.log.Warn("music folder not read", "err", err)
	}
	return fail(say(ctx, "音乐文件夹里没有音乐", "there is no music in the music folder"))
}

// maxListed is how many titles are told.
const maxListed = 50

// listMusic tells what there is.
func (s *Source) listMusic(ctx context.Context, _ map[string]any) mcp.ActionResponse {
	songs, err := s.music.Songs()
	if err != nil || len(songs) == 0 {
		return s.noMusic(ctx, err)
	}
	titles := make([]string, min(len(songs), maxListed))
	for i := range titles {
		titles[i] = songs[i].Title
	}
	lead := fmt.Sprintf(say(ctx, "共 %d 首", "%d songs"), len(songs))
	if len(songs) > maxListed {
		lead = fmt.Sprintf(say(ctx, "共 %d 首，前 %d 首是", "%d songs, the first %d are"), len(songs), maxListed)
	}
	return tell(lead + say(ctx, "：", ": ") + strings.Join(titles, say(ctx, "、", ", ")))
}
