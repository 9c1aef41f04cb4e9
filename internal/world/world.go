// Package world makes, of the settings, what reaches beyond the server: weather, news, searching, music and radio, and the home.
package world

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"xiaozhi/internal/config"
	"xiaozhi/mcp/local"
)

// Services makes what asks the services of the world. missing names the variable of the environment that a service of the
// settings lacks, which is left out then.
func Services(t config.Tools) (w local.World, missing string, err error) {
	w.Weather.City = t.Weather.City
	if w.Weather.Page, err = t.Weather.Page(); err != nil {
		return w, "", fmt.Errorf("tools.weather: %w", err)
	}
	if w.Forecast, err = t.Weather.Forecast(); err != nil {
		return w, "", fmt.Errorf("tools.weather: %w", err)
	}
	if w.News.Page, err = t.News.Page(); err != nil {
		return w, "", fmt.Errorf("tools.news: %w", err)
	}
	if w.Feeds, err = t.News.Reader(); err != nil {
		return w, "", fmt.Errorf("tools.news: %w", err)
	}
	if w.Search, missing, err = t.Search.Engine(os.Getenv); err != nil {
		return w, "", fmt.Errorf("tools.search: %w", err)
	}
	return w, missing, nil
}

// Found says for people what of the world can be asked; "": nothing.
func Found(t config.Tools, w local.World) string {
	var can []string
	if w.Forecast != nil {
		can = append(can, "weather (Open-Meteo, "+t.Weather.City+")")
	}
	if w.Feeds != nil {
		var feeds []string
		for _, lang := range slices.Sorted(maps.Keys(t.News.Feeds)) {
			feeds = append(feeds, lang+": "+strings.Join(t.News.Feeds[lang], ", "))
		}
		can = append(can, "news ("+strings.Join(feeds, "; ")+")")
	}
	if w.Search != nil {
		can = append(can, "search ("+string(w.Search.Kind())+")")
	}
	if n := len(t.Music.Stations); n > 0 {
		can = append(can, fmt.Sprintf("radio (%d)", n))
	}
	return strings.Join(can, ", ")
}
