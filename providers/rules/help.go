package rules

import (
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// help says what can be done, by the tools that there are.
func (r request) help() (providers.Delta, bool) {
	things := []string{r.say(phraseCanTell, r.lang)}
	for _, can := range []struct {
		phrase string
		is     bool
	}{
		{phraseCanRing, r.has(func(t tool) bool { return t.has("timer", "reminder", "alarm") && t.has("set", "create", "add") })},
		{phraseCanVolume, r.sets(volume)},
		{phraseCanBrightness, r.sets(brightness)},
		{phraseCanBattery, r.has(func(t tool) bool { _, ok := teller([]tool{t}, intent{act: actBattery}); return ok })},
		{phraseCanPlay, r.has(isPlayer)},
		{phraseCanLook, r.has(func(t tool) bool { _, _, ok := camera([]tool{t}); return ok })},
		{phraseCanRead, r.has(isLibrary)},
		{phraseCanSwitch, r.has(func(t tool) bool { return t.has("on", "off", "open", "close") && t.free() })},
		{phraseCanHome, r.has(func(t tool) bool { return isHome(t) && t.has("switch", "set") })},
		{phraseCanWeather, r.has(isForecast)},
		{phraseCanNews, r.has(isNews)},
		{phraseCanSearch, r.has(isSearch)},
		{phraseCanRemember, r.has(func(t tool) bool { return t.has("remember") && t.schema.Properties["text"].is("string") })},
	} {
		if can.is {
			things = append(things, r.say(can.phrase, r.lang))
		}
	}
	return r.text(phraseWhatCanIDo, "things", joinThings(things, r.lang))
}

// has reports whether there is a tool that fits.
func (r request) has(fits func(tool) bool) bool {
	_, ok := find(r.tools, fits)
	return ok
}

// sets reports whether a level can be set.
func (r request) sets(l level) bool {
	_, _, ok := setter(r.tools, l)
	return ok
}

// joinThings joins what can be done: a, b and c.
func joinThings(things []string, lang text.Lang) string {
	if lang.IsChinese() || len(things) == 1 {
		return strings.Join(things, "，")
	}
	return strings.Join(things[:len(things)-1], ", ") + " and " + things[len(things)-1]
}
