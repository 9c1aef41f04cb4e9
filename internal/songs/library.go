package songs

import (
	"context"
	"errors"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/music"
	"xiaozhi/mcp/local"
)

// Library is all that conversations play: the music folder, the stations, and what was fetched to be played.
type Library struct {
	Folder  *local.Music  // where songs are found by their names; nil: there is none
	Rest    music.Library // opens what was not fetched; nil: there is none
	Fetched *Cache        // nil: nothing is
}

var (
	_ music.Library = Library{}
	_ mail.Songs    = Library{}
)

// Open opens a song by the id that a tool gave, or that of one that was fetched.
func (m Library) Open(id string) (music.Song, error) {
	if Is(id) && m.Fetched != nil {
		song, err := m.Fetched.Open(id)
		if err != nil {
			return nil, err
		}
		return song, nil
	}
	if m.Rest == nil {
		return nil, local.ErrNoSong
	}
	return m.Rest.Open(id)
}

// Next names the song after the one of that id.
func (m Library) Next(id string) (next, title string, err error) {
	if m.Rest == nil {
		return "", "", local.ErrNoSong
	}
	return m.Rest.Next(id)
}

// Prepare finds a song of the folder by its name, or fetches it from its URL.
func (m Library) Prepare(ctx context.Context, song string) (id, title string, err error) {
	if !IsURL(song) {
		found, err := m.find(song)
		return found.ID, found.Title, err
	}
	if m.Fetched == nil {
		return "", "", mail.ErrNoSong
	}
	id, title, err = m.Fetched.Fetch(ctx, song)
	if status, is := errors.AsType[StatusError](err); is && status < 500 {
		err = errors.Join(mail.ErrNoSong, err)
	}
	for _, final := range []error{ErrURL, ErrHere, ErrTooLarge, ErrNoSound} {
		if errors.Is(err, final) {
			err = errors.Join(mail.ErrNoSong, err)
		}
	}
	return id, title, err
}

// find finds a song of the folder by its name.
func (m Library) find(name string) (local.Song, error) {
	if m.Folder == nil {
		return local.Song{}, mail.ErrNoSong
	}
	found, err := m.Folder.Find(name)
	if errors.Is(err, local.ErrNoSong) {
		err = mail.ErrNoSong
	}
	return found, err
}

// Has reports why a song cannot be played, as far as that can be told at once: nil, or [mail.ErrNoSong].
func (m Library) Has(song string) error {
	if IsURL(song) {
		return nil
	}
	_, err := m.find(song)
	return err
}
