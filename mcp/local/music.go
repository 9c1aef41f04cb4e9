package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Limits of a music folder.
const (
	maxSongs = 10_000
	maxDeep  = 6 // folders
)

// ErrNoSong says that nothing in the music folder fits.
var ErrNoSong = errors.New("no such song")

// Song is a file of the music folder.
type Song struct {
	ID    string // its path in the folder, with slashes
	Title string // its name, as people say it
	text  string // folder and name, folded, to be searched
}

// Music is a folder of music files. The folder is looked at anew each time, so
// that files can come and go. Nothing outside of it is ever opened, whatever an
// id says and wherever a symbolic link leads. All methods may be called at the
// same time.
type Music struct {
	dir  string
	pick func(n int) int // a number below n, at random
}

// NewMusic is the music of a folder, which need not be there yet.
func NewMusic(dir string) *Music { return &Music{dir: dir, pick: rand.IntN} }

// Songs lists the folder in the order of titles.
func (m *Music) Songs() ([]Song, error) {
	root, err := os.OpenRoot(m.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open music folder: %w", err)
	}
	defer root.Close()
	var songs []Song
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && name == ".":
			return err
		case err != nil:
			return fs.SkipDir // a folder that may not be read hides no other
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || strings.Count(name, "/") >= maxDeep):
			return fs.SkipDir
		case d.IsDir() || !isMusic(d.Name()):
			return nil
		case len(songs) == maxSongs:
			return fs.SkipAll
		}
		if info, err := root.Stat(name); err == nil && info.Mode().IsRegular() { // a link out of the folder is an error
			songs = append(songs, newSong(name))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read music folder: %w", err)
	}
	slices.SortFunc(songs, func(a, b Song) int { return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.ID, b.ID)) })
	return songs, nil
}

// isMusic reports whether a file is of a kind that can be played, by its name.
func isMusic(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".mp3", ".wav", ".flac", ".opus", ".ogg":
		return !strings.HasPrefix(name, ".")
	}
	return false
}

func newSong(name string) Song {
	bare := strings.ToValidUTF8(strings.TrimSuffix(name, path.Ext(name)), " ") // an old archive's names
	title := strings.Join(strings.Fields(strings.ReplaceAll(withoutNumber(path.Base(bare)), "_", " ")), " ")
	return Song{ID: name, Title: cmp.Or(title, path.Base(bare)), text: foldTitle(bare)}
}

// withoutNumber drops the number of a track in front of its name: 01 - , 3. .
func withoutNumber(name string) string {
	rest := strings.TrimLeft(name, "0123456789")
	if digits := len(name) - len(rest); digits == 0 || digits > 3 {
		return name
	}
	cut := strings.TrimLeft(rest, " -._")
	if cut == "" || cut == rest {
		return name
	}
	return cut
}

// foldTitle is a name without case and without signs, words apart.
func foldTitle(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		} else {
			b.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// Find finds the song that is meant by a name, or any if there is no name.
// ErrNoSong says that none fits.
func (m *Music) Find(name string) (Song, error) {
	songs, err := m.Songs()
	if err != nil {
		return Song{}, err
	}
	if len(songs) == 0 {
		return Song{}, ErrNoSong
	}
	wanted := foldTitle(name)
	if wanted == "" {
		return songs[m.pick(len(songs))], nil
	}
	best, found := 0.0, []Song(nil)
	for _, s := range songs {
		switch score := likeness(wanted, s); {
		case score > best:
			best, found = score, []Song{s}
		case score == best:
			found = append(found, s)
		}
	}
	if best < minLikeness {
		return Song{}, ErrNoSong
	}
	return found[m.pick(len(found))], nil // all songs of a singer fit the same
}

// Next is the song after the one of that id, the first after the last.
func (m *Music) Next(id string) (Song, error) {
	songs, err := m.Songs()
	if err != nil {
		return Song{}, err
	}
	if len(songs) == 0 {
		return Song{}, ErrNoSong
	}
	at := slices.IndexFunc(songs, func(s Song) bool { return s.ID == id })
	return songs[(at+1)%len(songs)], nil
}

// Open opens the song of an id that Songs, Find or Next gave. The caller closes it.
func (m *Music) Open(id string) (*os.File, error) {
	if !filepath.IsLocal(id) || path.Clean(id) != id || !isMusic(path.Base(id)) {
		return nil, ErrNoSong
	}
	root, err := os.OpenRoot(m.dir)
	if err != nil {
		return nil, fmt.Errorf("open music folder: %w", err)
	}
	defer root.Close()
	info, err := root.Stat(id)
	if err != nil {
		return nil, fmt.Errorf("open song: %w", err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its other end
		return nil, ErrNoSong
	}
	file, err := root.Open(id)
	if err != nil {
		return nil, fmt.Errorf("open song: %w", err)
	}
	return file, nil
}
