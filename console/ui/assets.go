package ui

import (
	"net/http"
	"path"
	"strings"

	"xiaozhi/internal/access"
)

// kinds are the files that browsers are given, by ending.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// asset returns the path of a file, which changes whenever one of them does. Files name each other by their names alone.
func (s *Site) asset(name string) string {
	return Prefix + "assets/" + s.hash + "/" + name
}

// serveAsset gives a file to anyone. A path with an old hash is gone: the page that had it must be loaded again.
func (s *Site) serveAsset(w http.ResponseWriter, r *http.Request) {
	hash, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Prefix+"assets/"), "/")
	body, there := s.assets[name]
	if !there || hash != s.hash {
		s.NotFound(w, r)
		return
	}
	access.PageHeaders(w, r)
	w.Header().Set("Content-Type", kinds[path.Ext(name)])
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(body) // the browser may be gone
}
