package local

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
)

// The ids of what is no file of the music folder begin so.
const (
	stationPrefix = "station:" // the name of a station follows
	addressPrefix = "url:"     // an address follows
)

// StationOf returns the name of the station that an id of a song means.
func StationOf(id string) (name string, ok bool) { return strings.CutPrefix(id, stationPrefix) }

// AddressOf returns the address that an id of a song means.
func AddressOf(id string) (address string, ok bool) { return strings.CutPrefix(id, addressPrefix) }

// Streams tries what is played over the network. Its methods may be called at the same time.
type Streams interface {
	// CheckStation tries a station by its name.
	CheckStation(ctx context.Context, name string) error
	// CheckAddress tries an address that somebody has said, which must be one of the Internet.
	CheckAddress(ctx context.Context, address string) error
}

// isRadio reports whether words mean any radio station.
func isRadio(words string) bool {
	return slices.ContainsFunc([]text.Lang{text.Chinese, text.English}, func(lang text.Lang) bool {
		return text.In(words, message.List(lang, "local/radio-words"))
	})
}

// playAddress has the conversation play an address that the model knows.
func (p player) playAddress(ctx context.Context, address string) mcp.ActionResponse {
	u, err := url.Parse(address)
	if p.streams == nil || err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fail(say(ctx, "local/stream-address"))
	}
	if err := p.streams.CheckAddress(ctx, address); err != nil {
		return p.silent(ctx, u.Hostname(), err)
	}
	return handOver(mcp.HandlerPlayMusic, mcp.MusicArgs{Action: mcp.MusicPlay, Name: u.Hostname(), Song: addressPrefix + address, Title: u.Hostname()})
}

// silent says that something does not play.
func (p player) silent(ctx context.Context, title string, err error) mcp.ActionResponse {
	if ctx.Err() == nil {
		p.log.Warn("a stream cannot be played", "stream", title, "err", err)
	}
	return fail(say(ctx, "local/stream-silent", title))
}

// withoutURL leaves out the argument that takes an address.
func withoutURL(urls bool) func(definition string) string {
	if urls {
		return nil
	}
	return keep("name")
}
