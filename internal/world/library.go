package world

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"

	"xiaozhi/agent/feature/music"
	"xiaozhi/audio/stream"
	"xiaozhi/audio/track"
	"xiaozhi/internal/config"
	"xiaozhi/mcp/local"
)

// MusicDir returns the folder of music files.
func MusicDir(m config.Music, data string) string { return cmp.Or(m.Dir, filepath.Join(data, "music")) }

// Library is the music folder and the stations, as tools find them and a conversation plays them. Its methods may be called at
// the same time.
type Library struct {
	Folder   *local.Music
	stations map[string]string
	opener   *stream.Opener
	play     func(address string, own bool) music.Song
}

var (
	_ music.Library = (*Library)(nil)
	_ local.Streams = (*Library)(nil)
)

// NewLibrary makes a library. What it plays ends with ctx.
func NewLibrary(ctx context.Context, m config.Music, data string, o stream.Options) *Library {
	opener := stream.NewOpener(o)
	return &Library{
		Folder:   local.NewMusic(MusicDir(m, data), slices.Sorted(maps.Keys(m.Stations))...),
		stations: m.Stations, opener: opener,
		play: func(address string, own bool) music.Song { return opener.Open(ctx, address, own) },
	}
}

// Open opens what a tool has found by its id.
func (l *Library) Open(id string) (music.Song, error) {
	if name, ok := local.StationOf(id); ok {
		if l.stations[name] == "" {
			return nil, local.ErrNoSong
		}
		return l.play(l.stations[name], true), nil
	}
	if address, ok := local.AddressOf(id); ok {
		return l.play(address, false), nil
	}
	file, err := l.Folder.Open(id)
	if err != nil {
		return nil, err
	}
	song, err := track.Open(file)
	if err != nil {
		return nil, err
	}
	return song, nil
}

// Next names the song after the one of that id.
func (l *Library) Next(id string) (next, title string, err error) {
	song, err := l.Folder.Next(id)
	return song.ID, song.Title, err
}

// CheckStation implements [local.Streams].
func (l *Library) CheckStation(ctx context.Context, name string) error {
	if l.stations[name] == "" {
		return local.ErrNoSong
	}
	return l.opener.Check(ctx, l.stations[name], true)
}

// CheckAddress implements [local.Streams].
func (l *Library) CheckAddress(ctx context.Context, address string) error {
	return l.opener.Check(ctx, address, false)
}
