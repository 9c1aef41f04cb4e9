package ui

import (
	"html/template"
	"strings"

	"xiaozhi/internal/account"
	"xiaozhi/internal/text"
)

// sections are the pages of the navigation, and the role that it takes to see them.
var sections = []struct {
	name string
	role account.Role
}{
	{"overview", account.Viewer},
	{"talk", account.Member},
	{"devices", account.Viewer},
	{"agents", account.Member},
	{"conversations", account.Member},
	{"tools", account.Member},
	{"services", account.Owner},
	{"doctor", account.Member},
	{"settings", account.Owner},
}

// nav lists the pages that a person may see. Users and log are a part of the settings.
func (s *Site) nav(lang text.Lang, p account.Person, path string) []Link {
	words := s.tongue[lang].words
	at, rest, _ := strings.Cut(strings.TrimPrefix(path, Prefix), "/")
	switch at {
	case "users", "voices", "log":
		at = "settings"
	case "trials":
		if at = "agents"; strings.HasPrefix(rest, "turns/") {
			at = "conversations"
		}
	case "costs":
		at = "overview"
	}
	var all []Link
	for _, sec := range sections {
		if p.Is(sec.role) {
			all = append(all, Link{Path: Prefix + sec.name, Text: words.say("frame/nav-" + sec.name), Icon: sec.name, Here: at == sec.name})
		}
	}
	return all
}

// strokes are the lines of icons, on a square of 24, all drawn in one width.
var strokes = map[string]string{
	"overview":      `<path d="M4 13h7V4H4zM13 20h7V11h-7zM4 20h7v-4H4zM13 8h7V4h-7z"/>`,
	"talk":          `<path d="M12 4a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0V7a3 3 0 0 0-3-3zM6 11a6 6 0 0 0 12 0M12 17v3M9 20h6"/>`,
	"devices":       `<path d="M7 3h10a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H7a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1z"/><circle cx="12" cy="15" r="3"/><path d="M12 7.5v.01"/>`,
	"agents":        `<circle cx="12" cy="8" r="4"/><path d="M4.5 20a7.5 7.5 0 0 1 15 0"/>`,
	"conversations": `<path d="M4 5h16v11H10l-5 4v-4H4zM8 9.500h8M8 12.500h5"/>`,
	"tools":         `<path d="M14.500 6.500a4 4 0 0 0-5.300 5L4 16.700 7.300 20l5.200-5.200a4 4 0 0 0 5-5.300l-2.500 2.500-2.500-.5-.5-2.500z"/>`,
	"services":      `<path d="M5 4h14v6H5zM5 14h14v6H5zM8 7v.01M8 17v.01M11.500 7H16M11.500 17H16"/>`,
	"doctor":        `<path d="M3 12h4l2.500-6 4.500 12 2.500-6H21"/>`,
	"settings":      `<path d="M4 7h9M17 7h3M4 17h3M11 17h9"/><circle cx="15" cy="7" r="2"/><circle cx="9" cy="17" r="2"/>`,
	"menu":          `<path d="M4 7h16M4 12h16M4 17h16"/>`,
	"person":        `<circle cx="12" cy="9" r="3.500"/><path d="M5.500 19.500a6.500 6.500 0 0 1 13 0"/>`,
	"ok":            `<path d="M5 12.500l4.500 4.500L19 7.500"/>`,
	"warn":          `<path d="M12 4l9 16H3zM12 10v4.500M12 17.200v.01"/>`,
	"bad":           `<circle cx="12" cy="12" r="8.500"/><path d="M9 9l6 6M15 9l-6 6"/>`,
	"info":          `<circle cx="12" cy="12" r="8.500"/><path d="M12 11v5.500M12 7.800v.01"/>`,
	"play":          `<path d="M8 5l11 7-11 7z"/>`,
	"up":            `<path d="M12 19V6M6.500 11L12 5.500 17.500 11"/>`,
	"down":          `<path d="M12 5v13M6.500 13l5.500 5.500 5.500-5.500"/>`,
	"next":          `<path d="M9 5l7 7-7 7"/>`,
}

// icon draws one that stands beside words: nothing reads it aloud.
func icon(name string) template.HTML {
	//nolint:gosec // all are constants of this file
	return template.HTML(`<svg class="icon" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" focusable="false">` + strokes[name] + `</svg>`)
}
