package app

import (
	"fmt"
	"path/filepath"
	"slices"

	"xiaozhi/agent/feature/music"
	"xiaozhi/audio/track"
	"xiaozhi/internal/config"
	"xiaozhi/mcp/local"
)

// localTools are the options of the server's own tools. roles are the prompts
// that there are. config.Load has seen that the pages can be made.
func localTools(cfg *config.Config, data string, roles []string) (local.Options, error) {
	weather, err := cfg.Tools.Weather.Page()
	if err != nil {
		return local.Options{}, fmt.Errorf("tools.weather: %w", err)
	}
	news, err := cfg.Tools.News.Page()
	if err != nil {
		return local.Options{}, fmt.Errorf("tools.news: %w", err)
	}
	return local.Options{
		Roles:   slices.DeleteFunc(slices.Clone(roles), func(name string) bool { return name == cfg.Agent.Prompt }),
		Weather: local.Outside{Page: weather, City: cfg.Tools.Weather.City},
		News:    local.Outside{Page: news},
		Music:   local.NewMusic(musicDir(cfg, data)),
	}, nil
}

// musicDir is the folder of the server's music.
func musicDir(cfg *config.Config, data string) string {
	if dir := cfg.Tools.Music.Dir; dir != "" {
		return dir
	}
	return filepath.Join(data, "music")
}

// musicLibrary is the music folder as a conversation plays it.
type musicLibrary struct{ folder *local.Music }

// Open opens a song by the id that a tool gave.
func (m musicLibrary) Open(id string) (music.Song, error) {
	file, err := m.folder.Open(id)
	if err != nil {
		return nil, err
	}
	track, err := track.Open(file)
	if err != nil {
		return nil, err
	}
	return track, nil
}

// Next names the song after the one of that id.
func (m musicLibrary) Next(id string) (next, title string, err error) {
	song, err := m.folder.Next(id)
	return song.ID, song.Title, err
}
