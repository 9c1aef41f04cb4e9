package home

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
)

const (
	maxAsked = 16 // entities whose states are asked for at once
	maxTold  = 12 // of those that are told of
)

// tell tells how entities are now.
func (w work) tell(ctx context.Context, of []entity) mcp.ActionResponse {
	now, err := w.look(ctx, of)
	if err != nil {
		return w.failed(ctx, err)
	}
	var parts []string
	for _, e := range of {
		if s, ok := now[e.ID]; ok && len(parts) < maxTold {
			parts = append(parts, w.say(e, s))
		}
	}
	told := ""
	for _, p := range parts {
		told = text.Join(told, p)
	}
	if left := len(of) - len(parts); left > 0 {
		told = text.Join(told, message.In(w.lang, "home/more", left))
	}
	return mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: told}
}

// say tells how one entity is: Kitchen ceiling: on, 60 percent.
func (w work) say(e entity, s state) string {
	name := e.Name
	if e.Area != "" && !strings.Contains(text.Bare(e.Name), text.Bare(e.Area)) {
		name = text.Join(e.Area, e.Name)
	}
	parts := []string{w.stateWords(e, s)}
	percent := func(v *float64, scale float64) {
		if v != nil {
			parts = append(parts, message.In(w.lang, "home/percent", int(math.Round(min(max(*v*scale, 0), 100)))))
		}
	}
	a := s.Attributes
	switch e.domain() {
	case "light":
		percent(a.Brightness, 100.0/255)
	case "cover":
		percent(a.Position, 1)
	case "fan":
		percent(a.Fan, 1)
	case "media_player":
		percent(a.Volume, 100)
		if a.Title != "" {
			parts = append(parts, text.Cut(text.Line(a.Title), maxName))
		}
	case "climate":
		if a.Temperature != nil {
			parts = append(parts, message.In(w.lang, "home/measured", degrees(*a.Temperature)))
		}
		if a.Target != nil {
			parts = append(parts, message.In(w.lang, "home/target", degrees(*a.Target)))
		}
	}
	return fmt.Sprintf(w.lang.Pick("%s：%s。", "%s: %s."), name, strings.Join(parts, w.lang.Pick("，", ", ")))
}

// stateWords returns a state in words: on, closed, 21.5 °C.
func (w work) stateWords(e entity, s state) string {
	value := text.Cut(text.Line(s.State), maxName)
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return value + cmpUnit(s.Attributes.Unit)
	}
	key := value
	if e.domain() == "binary_sensor" && !slices.Contains([]string{"unavailable", "unknown"}, value) {
		key = e.Class + "-" + value
	}
	for _, entry := range message.List(w.lang, "home/states") {
		if states, words, ok := strings.Cut(entry, "="); ok && slices.Contains(strings.Split(states, ","), key) {
			return words
		}
	}
	return strings.ReplaceAll(value, "_", " ")
}

// cmpUnit is a unit as it stands behind its number.
func cmpUnit(unit string) string {
	unit = text.Cut(text.Line(unit), 12)
	if unit == "" || unit == "%" {
		return unit
	}
	return " " + unit
}

func degrees(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
