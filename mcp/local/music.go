package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
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
	dir      string
	stations []Song
	pick     func(n int) int // a number below n, at random
}

// NewMusic is the music of a folder, which need not be there yet, and the stations of these names.
func NewMusic(dir string, stations ...string) *Music {
	m := &Music{dir: dir, pick: rand.IntN}
	for _, name := range stations {
		m.stations = append(m.stations, Song{ID: stationPrefix + name, Title: name, text: foldTitle(name)})
	}
	return m
}

// Stations lists the stations in the order in which they were given.
func (m *Music) Stations() []Song { return slices.Clone(m.stations) }

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
	kinds := []string{".mp3", ".wav", ".flac", ".opus", ".ogg"}
	return !strings.HasPrefix(name, ".") && slices.Contains(kinds, strings.ToLower(path.Ext(name)))
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
func foldTitle(name string) string {
	sign := func(r rune) bool { return !text.IsWord(r) }
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), sign), " ")
}

// some are the songs, or the stations if there is no song. ErrNoSong says that there are neither.
func (m *Music) some() ([]Song, error) {
	songs, err := m.Songs()
	if len(songs) == 0 && len(m.stations) > 0 {
		return m.Stations(), nil
	}
	if err == nil && len(songs) == 0 {
		err = ErrNoSong
	}
	return songs, err
}

// Find finds the song or the station that is meant by a name, or any song if there is no name; words for any radio station mean the
// first. ErrNoSong says that none fits.
func (m *Music) Find(name string) (Song, error) {
	songs, err := m.some()
	if err != nil {
		return Song{}, err
	}
	wanted := foldTitle(name)
	if wanted == "" {
		return songs[m.pick(len(songs))], nil
	}
	if len(m.stations) > 0 && isRadio(name) {
		return m.stations[0], nil
	}
	best, found := 0.0, []Song(nil)
	for _, s := range slices.Concat(m.stations, songs) {
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

// Next is the song after the one of that id, the first after the last; after a station the next one.
func (m *Music) Next(id string) (Song, error) {
	songs, err := m.some()
	if slices.ContainsFunc(m.stations, func(s Song) bool { return s.ID == id }) {
		songs, err = m.stations, nil
	}
	if err != nil {
		return Song{}, err
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

// minLikeness is how like its name a song must be to be the one that was meant.
const minLikeness = 0.45

// likeness says how well a song fits what was asked for, 0 to 1: the title as it
// is, then part of it or of its folder, then all words somewhere in it, then
// most of it.
func likeness(wanted string, s Song) float64 {
	tight, tightTitle, tightText := squeeze(wanted), squeeze(foldTitle(s.Title)), squeeze(s.text)
	lacking := func(word string) bool { return !strings.Contains(s.text, word) }
	switch {
	case tight == tightTitle:
		return 1
	case strings.Contains(tightTitle, tight):
		return 0.95
	case strings.Contains(tightText, tight):
		return 0.9
	case len([]rune(tightTitle)) >= 2 && strings.Contains(tight, tightTitle):
		return 0.85 // 周杰伦的青花瓷
	case !slices.ContainsFunc(strings.Fields(wanted), lacking):
		return 0.8
	}
	return 0.75 * max(pairs(tight, tightTitle), pairs(tight, tightText))
}

func squeeze(text string) string { return strings.ReplaceAll(text, " ", "") }

// pairs counts wanted's pairs of neighbouring letters that are in name, so
// that a letter wrong or missing costs little. A short name must also have
// little else, for its few pairs are soon found.
func pairs(wanted, name string) float64 {
	x, y := []rune(wanted), []rune(name)
	if len(x) < 2 || len(y) < 2 {
		return 0
	}
	count := make(map[[2]rune]int, len(y))
	for i := range len(y) - 1 {
		count[[2]rune{y[i], y[i+1]}]++
	}
	shared := 0.0
	for i := range len(x) - 1 {
		if p := [2]rune{x[i], x[i+1]}; count[p] > 0 {
			count[p]--
			shared++
		}
	}
	if len(x) < 4 {
		return 2 * shared / float64(len(x)+len(y)-2)
	}
	return shared / float64(len(x)-1)
}

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

// player finds music of the server's own folder, and stations.
type player struct {
	music   *Music
	streams Streams
	log     *slog.Logger
}

// playMusic finds the song or the station; the conversation plays it. A stream is tried before, so that it can be said that it does not play.
func (p player) playMusic(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	if address := strings.TrimSpace(textArg(arguments, "url")); address != "" {
		return p.playAddress(ctx, address)
	}
	name := strings.TrimSpace(textArg(arguments, "name"))
	song, err := p.music.Find(name)
	switch {
	case errors.Is(err, ErrNoSong) && name != "":
		return fail(say(ctx, "local/song-none", name))
	case err != nil:
		return p.noMusic(ctx, err)
	}
	if station, ok := strings.CutPrefix(song.ID, stationPrefix); ok && p.streams != nil {
		if err := p.streams.CheckStation(ctx, station); err != nil {
			return p.silent(ctx, song.Title, err)
		}
	}
	return handOver(mcp.HandlerPlayMusic, mcp.MusicArgs{Action: mcp.MusicPlay, Name: name, Song: song.ID, Title: song.Title})
}

// noMusic says that there is none, or why it cannot be read.
func (p player) noMusic(ctx context.Context, err error) mcp.ActionResponse {
	if !errors.Is(err, ErrNoSong) {
		p.log.Warn("music folder not read", "err", err)
	}
	return fail(say(ctx, "local/music-none"))
}

// maxListed is how many titles are told.
const maxListed = 50

// listMusic tells what there is.
func (p player) listMusic(ctx context.Context, _ map[string]any) mcp.ActionResponse {
	songs, err := p.music.some()
	if err != nil {
		return p.noMusic(ctx, err)
	}
	lang := language(ctx)
	titles := func(of []Song) string {
		all := make([]string, min(len(of), maxListed))
		for i := range all {
			all[i] = of[i].Title
		}
		return strings.Join(all, lang.Pick("、", ", "))
	}
	radio := ""
	if stations := p.music.Stations(); len(stations) > 0 {
		radio = say(ctx, "local/stations", titles(stations))
		if strings.HasPrefix(songs[0].ID, stationPrefix) {
			return tell(radio)
		}
	}
	lead := say(ctx, "local/songs", len(songs))
	if len(songs) > maxListed {
		lead = say(ctx, "local/songs-first", len(songs), maxListed)
	}
	return tell(strings.TrimSuffix(lead+lang.Pick("：", ": ")+titles(songs)+lang.Pick("。", ". ")+radio, lang.Pick("。", ". ")))
}
