package home

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/url"
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/local/web"
)

// maxWorked is how many things one call works.
const maxWorked = 60

// act runs a tool.
func (h *Home) act(ctx context.Context, inv *inventory, tool string, arguments map[string]any) mcp.ActionResponse {
	w := work{Home: h, arguments: arguments, lang: cmp.Or(text.Lang(mcp.InfoFrom(ctx).Language), text.Chinese)}
	t := target{Name: w.text("name"), Area: w.text("area"), Kind: w.text("kind")}
	if t == (target{}) {
		return w.fail("home/which")
	}
	found, which := inv.find(t, can(tool))
	switch {
	case len(which) > 0:
		return w.fail("home/which-of", list(which))
	case len(found) == 0:
		return w.fail("home/none", strings.TrimSpace(t.Area+" "+cmp.Or(t.Name, t.Kind)))
	case tool == toolState:
		return w.tell(ctx, found)
	case tool == toolDoor && len(found) > 1:
		return w.fail("home/which-of", list(found))
	case len(found) > maxWorked:
		return w.fail("home/many", len(found))
	}
	gone := slices.DeleteFunc(slices.Clone(found), func(e entity) bool { return e.State != "unavailable" })
	if len(gone) == len(found) {
		now, _ := h.look(ctx, gone) // perhaps it was so only when all was read
		gone = slices.DeleteFunc(gone, func(e entity) bool { return now[e.ID].State != "unavailable" })
	}
	if len(gone) == len(found) {
		return w.fail("home/unavailable", list(gone))
	}
	orders, wrong := w.orders(ctx, tool, found)
	if wrong != "" {
		return w.fail(wrong, list(found))
	}
	for _, o := range orders {
		if err := h.call(ctx, o); err != nil {
			return w.failed(ctx, err)
		}
	}
	return mcp.ActionResponse{Action: mcp.ActionTypeNone, Result: message.In(w.lang, "home/done", list(found))}
}

// work is one call of a tool.
type work struct {
	*Home
	arguments map[string]any
	lang      text.Lang
}

func (w work) text(name string) string {
	s, _ := w.arguments[name].(string)
	return strings.TrimSpace(s)
}

// number is a number among the arguments.
func (w work) number(name string) (float64, bool) {
	switch n := w.arguments[name].(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	}
	return 0, false
}

func (w work) fail(id string, args ...any) mcp.ActionResponse {
	words := message.In(w.lang, id, args...)
	return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: words, Response: words}
}

// failed says what Home Assistant did wrong.
func (w work) failed(ctx context.Context, err error) mcp.ActionResponse {
	if ctx.Err() == nil {
		w.o.Log.Warn("the home cannot be worked", "err", err)
	}
	switch {
	case errors.Is(err, ErrToken):
		return w.fail("home/token")
	case errors.Is(err, ErrRefused):
		return w.fail("home/refused")
	}
	return w.fail("home/silent")
}

// order is a call of one of the services of Home Assistant.
type order struct {
	domain, service string
	data            map[string]any
}

// call has it carried out. It waits until that is done.
func (h *Home) call(ctx context.Context, o order) error {
	_, err := h.o.Client.Do(ctx, web.Request{Path: "/api/services/" + o.domain + "/" + o.service, Body: o.data})
	return explain(err)
}

// look returns the present states of some entities; what cannot be asked is missing. The error says why, if nothing could.
func (h *Home) look(ctx context.Context, of []entity) (now map[string]state, err error) {
	now = map[string]state{}
	for _, e := range of[:min(len(of), maxAsked)] {
		var s state
		if wrong := h.o.Client.JSON(ctx, web.Request{Path: "/api/states/" + url.PathEscape(e.ID)}, &s); wrong != nil {
			if err = explain(wrong); !errors.Is(err, ErrRefused) {
				break // the next one would not be answered either
			}
			continue // it is gone
		}
		now[e.ID] = s
	}
	if len(now) > 0 {
		err = nil
	}
	return now, err
}

// orders returns what to have done with entities, those of a domain together. wrong is the message that says why not.
func (w work) orders(ctx context.Context, tool string, of []entity) (orders []order, wrong string) {
	var domains []string
	for _, e := range of {
		if !slices.Contains(domains, e.domain()) {
			domains = append(domains, e.domain())
		}
	}
	for _, domain := range domains {
		var ids []string
		for _, e := range of {
			if e.domain() == domain {
				ids = append(ids, e.ID)
			}
		}
		service, data := "", map[string]any{}
		switch tool {
		case toolSwitch:
			service = w.switches(domain)
		case toolSet:
			service = w.sets(ctx, domain, of, data)
		case toolMedia:
			service = map[string]string{"play": "media_play", "pause": "media_pause", "stop": "media_stop", "next": "media_next_track", "previous": "media_previous_track"}[w.text("action")]
		case toolScene:
			service = "turn_on"
		case toolDoor:
			service = "open_cover"
		}
		if service == "" {
			continue // it is of the same area, but cannot do that
		}
		data["entity_id"] = ids
		orders = append(orders, order{domain, service, data})
	}
	if len(orders) == 0 {
		return nil, "home/cannot"
	}
	return orders, ""
}

// switches returns the service that turns things on or off.
func (w work) switches(domain string) string {
	on := w.text("state") == "on"
	switch {
	case domain == "cover" && on:
		return "open_cover"
	case domain == "cover":
		return "close_cover"
	case on:
		return "turn_on"
	}
	return "turn_off"
}

// sets returns the service that sets things of a domain, and fills in its data; "": they have nothing of that kind.
func (w work) sets(ctx context.Context, domain string, of []entity, data map[string]any) string {
	value, valued := w.number("value")
	by, moved := w.number("by")
	switch domain {
	case "light":
		return w.light(value, valued, by, moved, data)
	case "cover":
		data["position"] = value
		return service(valued, "set_cover_position")
	case "fan":
		if moved && !valued {
			data["percentage_step"] = math.Abs(by)
			return map[bool]string{true: "increase_speed", false: "decrease_speed"}[by > 0]
		}
		data["percentage"] = value
		return service(valued, "set_percentage")
	case "media_player":
		if moved && !valued {
			return map[bool]string{true: "volume_up", false: "volume_down"}[by > 0]
		}
		data["volume_level"] = value / 100
		return service(valued, "volume_set")
	case "climate":
		return w.climate(ctx, of, by, moved, data)
	}
	return ""
}

// service returns a service if what it needs is there.
func service(there bool, name string) string {
	if there {
		return name
	}
	return ""
}

// light sets brightness and color.
func (w work) light(value float64, valued bool, by float64, moved bool, data map[string]any) string {
	if valued {
		data["brightness_pct"] = value
	} else if moved {
		data["brightness_step_pct"] = by
	}
	color := strings.ToLower(w.text("color"))
	if color != "" {
		name := colorOf(color)
		if kelvin := map[string]int{"warm": 2700, "neutral": 4000, "cold": 6000}[name]; kelvin > 0 {
			data["color_temp_kelvin"] = kelvin
		} else {
			data["color_name"] = name
		}
	}
	return service(valued || moved || color != "", "turn_on")
}

// colorOf returns a color as CSS and Home Assistant call it; warm, neutral and cold are whites.
func colorOf(said string) string {
	for _, lang := range []text.Lang{text.Chinese, text.English} {
		for _, entry := range message.List(lang, "home/colors") {
			if words := strings.Split(entry, "="); len(words) == 2 && slices.Contains(strings.Split(words[1], ","), said) {
				return words[0]
			}
		}
	}
	return strings.ReplaceAll(said, " ", "")
}

// climate sets the temperature, or how much warmer it shall be, or the mode.
func (w work) climate(ctx context.Context, of []entity, by float64, moved bool, data map[string]any) string {
	if mode := w.text("mode"); mode != "" {
		data["hvac_mode"] = mode
		return "set_hvac_mode"
	}
	degrees, known := w.number("temperature")
	if !known && moved {
		now, _ := w.look(ctx, of)
		for id, s := range now {
			if s.Attributes.Target != nil && strings.HasPrefix(id, "climate.") {
				degrees, known = *s.Attributes.Target+by, true
			}
		}
	}
	data["temperature"] = degrees
	return service(known, "set_temperature")
}
