package local

import (
	"context"
	"errors"
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
		return fail(say(ctx, "local/song-none", name))
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
	return fail(say(ctx, "local/music-none"))
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
	lead := say(ctx, "local/songs", len(songs))
	if len(songs) > maxListed {
		lead = say(ctx, "local/songs-first", len(songs), maxListed)
	}
	lang := language(ctx)
	return tell(lead + lang.Pick("：", ": ") + strings.Join(titles, lang.Pick("、", ", ")))
}
