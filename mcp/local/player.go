package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"xiaozhi/mcp"
)

// playerControl is the handler of a tool that only tells the player something.
func playerControl(action mcp.MusicAction) Handler {
	return func(context.Context, map[string]any) mcp.ActionResponse {
		return handOver(mcp.HandlerPlayMusic, mcp.MusicArgs{Action: action})
	}
}

// lacksPlayer reports whether music is offered: the device plays none by itself.
func lacksPlayer(tools []mcp.Tool) bool {
	for _, tool := range tools {
		t, ok := readTool(tool, "music", "song")
		if ok && t.has("play", "search") {
			return false
		}
	}
	return true
}

// player finds music of the server's own folder.
type player struct {
	music *Music
	log   *slog.Logger
}

// playMusic finds the song; the conversation plays it.
func (p player) playMusic(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	name := strings.TrimSpace(textArg(arguments, "name"))
	song, err := p.music.Find(name)
	switch {
	case errors.Is(err, ErrNoSong) && name != "":
		return fail(fmt.Sprintf(say(ctx, "没有找到《%s》", "there is no song like %q"), name))
	case err != nil:
		return p.noMusic(ctx, err)
	}
	return handOver(mcp.HandlerPlayMusic, mcp.MusicArgs{Action: mcp.MusicPlay, Name: name, Song: song.ID, Title: song.Title})
}

// noMusic says that there is none, or why it cannot be read.
func (p player) noMusic(ctx context.Context, err error) mcp.ActionResponse {
	if err != nil && !errors.Is(err, ErrNoSong) {
		p.log.Warn("music folder not read", "err", err)
	}
	return fail(say(ctx, "音乐文件夹里没有音乐", "there is no music in the music folder"))
}

// maxListed is how many titles are told.
const maxListed = 50

// listMusic tells what there is.
func (p player) listMusic(ctx context.Context, _ map[string]any) mcp.ActionResponse {
	songs, err := p.music.Songs()
	if err != nil || len(songs) == 0 {
		return p.noMusic(ctx, err)
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
