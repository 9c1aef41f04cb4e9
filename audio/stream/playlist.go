package stream

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"
)

// maxPlaylist is how much of a playlist is read, in bytes.
const maxPlaylist = 64 << 10

// resolve returns the addresses of sound that an address leads to: itself, or those of the playlist that is there.
func (o *Opener) resolve(ctx context.Context, address string, sc scope, depth int) ([]entry, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "mcp"}, u.Scheme) || u.User != nil {
		return nil, ErrAddress
	}
	e := entry{address: u, scope: sc}
	if depth > 0 && !namesPlaylist(u.Path, "") { // an entry of a playlist is looked at when its turn comes
		return []entry{e}, nil
	}
	b, err := o.connect(ctx, &e)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 512)
	n, err := io.ReadAtLeast(b, head, 1)
	if err == nil && !namesPlaylist(u.Path, b.kind) && !looksLikePlaylist(head[:n]) {
		b.reader = io.MultiReader(bytes.NewReader(head[:n]), b.reader)
		b.at -= int64(n)
		e.ready = b
		return []entry{e}, nil
	}
	defer b.Close()
	if err != nil {
		return nil, err
	}
	if depth == maxDepth {
		return nil, ErrPlaylist
	}
	rest, err := io.ReadAll(io.LimitReader(b, maxPlaylist))
	if err != nil {
		return nil, err
	}
	all := slices.Concat(head[:n], rest)
	if bytes.Contains(all, []byte("#EXT-X-")) {
		return nil, ErrKind // segments of HLS
	}
	var entries []entry
	for _, line := range playlist(all) {
		at, err := u.Parse(line)
		if err != nil || len(entries) == maxEntries || at.Scheme == "mcp" && (u.Scheme != "mcp" || at.Host != u.Host) {
			continue
		}
		if more, err := o.resolve(ctx, at.String(), sc, depth+1); err == nil {
			entries = append(entries, more[:min(len(more), maxEntries-len(entries))]...)
		}
	}
	if len(entries) == 0 {
		return nil, ErrPlaylist
	}
	return entries, nil
}

// namesPlaylist reports whether a name or a Content-Type is one of playlists.
func namesPlaylist(name, kind string) bool {
	if slices.Contains([]string{".m3u", ".m3u8", ".pls"}, strings.ToLower(path.Ext(name))) {
		return true
	}
	kind, _, _ = mime.ParseMediaType(kind)
	return slices.Contains([]string{
		"audio/x-mpegurl", "audio/mpegurl", "application/x-mpegurl", "application/vnd.apple.mpegurl", "audio/x-scpls", "audio/scpls", "application/pls+xml", "application/pls",
	}, kind)
}

func looksLikePlaylist(head []byte) bool {
	head = bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff"))))
	return bytes.HasPrefix(head, []byte("#extm3u")) || bytes.HasPrefix(head, []byte("[playlist]"))
}

// playlist returns the addresses of an M3U or PLS file, which may be relative ones.
func playlist(content []byte) (all []string) {
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	pls := bytes.HasPrefix(bytes.ToLower(bytes.TrimSpace(content)), []byte("[playlist]"))
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() && len(all) < maxEntries {
		line := strings.TrimSpace(lines.Text())
		if pls {
			key, value, ok := strings.Cut(line, "=")
			if !ok || !strings.HasPrefix(strings.ToLower(key), "file") {
				continue
			}
			line = strings.TrimSpace(value)
		}
		if line != "" && !strings.HasPrefix(line, "#") && !strings.ContainsAny(line, "\x00\r") {
			all = append(all, line)
		}
	}
	return all
}
