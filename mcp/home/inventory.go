package home

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/mcp/local/web"
)

// Limits of what is taken over.
const (
	maxEntities = 400
	maxName     = 80 // bytes
	maxStates   = 16 << 20
)

// entity is one thing, or a sensor of one.
type entity struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Area  string `json:"area"` // "": none
	State string `json:"state"`
	Class string `json:"class"` // its device_class; "": none
	Unit  string `json:"unit"`
}

// domain returns the kind of an entity: light, switch, cover.
func (e entity) domain() string {
	domain, _, _ := strings.Cut(e.ID, ".")
	return domain
}

// isDoor reports whether it is something through which somebody can come in.
func (e entity) isDoor() bool {
	return e.domain() == "cover" && slices.Contains([]string{"garage", "door", "gate"}, e.Class)
}

// worked are the domains that can be worked, and told those that only tell something, by their classes.
var (
	worked = []string{"light", "switch", "input_boolean", "fan", "cover", "climate", "media_player", "scene", "script"}
	told   = map[string][]string{
		"sensor":        {"temperature", "humidity", "illuminance", "carbon_dioxide", "pm25", "power", "battery"},
		"binary_sensor": {"door", "window", "opening", "garage_door", "motion", "occupancy", "moisture", "smoke", "lock"},
	}
)

// isWanted reports whether an entity is taken over.
func (e entity) isWanted(o Options) bool {
	fits := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(strings.ToLower(p), e.ID)
			return ok && err == nil
		})
	}
	known := slices.Contains(worked, e.domain()) || slices.Contains(told[e.domain()], e.Class)
	return known && e.Name != "" && (len(o.Show) == 0 || fits(o.Show)) && !fits(o.Hide)
}

// inventory holds what there is at home. It does not change.
type inventory struct {
	entities []entity
	areas    []string
	leftOut  int // entities that were too many
}

// survey is a template that Home Assistant renders: all entities with their areas, as JSON. Only administrators may have templates
// rendered, and only templates know areas.
const survey = `{%- set all = namespace(list=[]) -%}
{%- for s in states if s.domain in ['light','switch','input_boolean','fan','cover','climate','media_player','scene','script','sensor','binary_sensor'] -%}
{%- set all.list = all.list + [{'id': s.entity_id, 'name': s.name, 'area': area_name(s.entity_id) or '', 'state': s.state, 'class': s.attributes.device_class or '', 'unit': s.attributes.unit_of_measurement or ''}] -%}
{%- endfor -%}
{{ all.list | to_json }}`

// read asks what there is: with areas, or, for a token of no administrator, without.
func read(ctx context.Context, o Options) (*inventory, error) {
	a, err := o.Client.Do(ctx, web.Request{Path: "/api/template", Body: map[string]string{"template": survey}})
	var all []entity
	if err == nil {
		if err := json.Unmarshal(a.Body, &all); err != nil {
			return nil, fmt.Errorf("read entities: %w", web.ErrJSON)
		}
		return newInventory(all, o), nil
	}
	if status := explain(err); ctx.Err() != nil || status == err { //nolint:errorlint // whether it is a refusal
		return nil, fmt.Errorf("read entities: %w", err)
	}
	var states []state
	if err := o.Client.JSON(ctx, web.Request{Path: "/api/states"}, &states); err != nil {
		return nil, fmt.Errorf("read entities: %w", explain(err))
	}
	for _, s := range states {
		all = append(all, entity{ID: s.ID, Name: s.Attributes.Name, State: s.State, Class: s.Attributes.Class, Unit: s.Attributes.Unit})
	}
	return newInventory(all, o), nil
}

// state is an entity as /api/states has it.
type state struct {
	ID         string `json:"entity_id"`
	State      string `json:"state"`
	Attributes struct {
		Name        string   `json:"friendly_name"`
		Class       string   `json:"device_class"`
		Unit        string   `json:"unit_of_measurement"`
		Brightness  *float64 `json:"brightness"`       // 0 to 255
		Position    *float64 `json:"current_position"` // in percent
		Target      *float64 `json:"temperature"`
		Temperature *float64 `json:"current_temperature"`
		Volume      *float64 `json:"volume_level"` // 0 to 1
		Title       string   `json:"media_title"`
		Fan         *float64 `json:"percentage"`
	} `json:"attributes"`
}

// newInventory keeps what is wanted, the things before the sensors, in the order of areas and names.
func newInventory(all []entity, o Options) *inventory {
	inv := &inventory{}
	for _, e := range all {
		e.ID, e.Name, e.Area = strings.ToLower(e.ID), text.Cut(text.Line(e.Name), maxName), text.Cut(text.Line(e.Area), maxName)
		if e.isWanted(o) {
			inv.entities = append(inv.entities, e)
		}
	}
	slices.SortFunc(inv.entities, func(a, b entity) int {
		return cmp.Or(cmp.Compare(len(told[a.domain()]), len(told[b.domain()])), cmp.Compare(a.Area, b.Area), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	if inv.leftOut = max(0, len(inv.entities)-maxEntities); inv.leftOut > 0 {
		inv.entities = inv.entities[:maxEntities]
	}
	for _, e := range inv.entities {
		if e.Area != "" && !slices.Contains(inv.areas, e.Area) {
			inv.areas = append(inv.areas, e.Area)
		}
	}
	slices.Sort(inv.areas)
	return inv
}
