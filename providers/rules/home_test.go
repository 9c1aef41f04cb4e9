package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/feeds"
	"xiaozhi/internal/servicetest/homeassistant"
	"xiaozhi/internal/servicetest/openmeteo"
	"xiaozhi/internal/servicetest/websearch"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/mcp"
	homes "xiaozhi/mcp/home"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/local/news"
	"xiaozhi/mcp/local/search"
	"xiaozhi/mcp/local/weather"
	"xiaozhi/mcp/local/web"
	"xiaozhi/mcp/router"
	"xiaozhi/providers"
)

// home is a speaker with standard firmware, the tools of this server beside its own, and the
// brain; what a conversation does about timers and music is done here in a few words.
type home struct {
	t      *testing.T
	lang   text.Lang
	brain  *Brain
	router *router.Router
	past   []providers.Message
	timers []mcp.TimerArgs

	calls    []string // of the last turn: NAME ARGUMENTS
	said     string   // in the last turn
	fallback bool     // the last turn had no rule
}

func newHome(t *testing.T, lang text.Lang) *home {
	t.Helper()
	dir := t.TempDir()
	for _, song := range []string{"Mozart - Lullaby.mp3", "茉莉花.mp3"} {
		if err := os.WriteFile(filepath.Join(dir, song), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := func() time.Time { return householdTime }
	own := local.New(local.Options{Now: now, Music: local.NewMusic(dir, "Radio Six", "音乐之声"), World: worldOf(t, lang), Memory: true, Documents: shelf{}, Voices: func() bool { return true }})
	things := houseOf(t, lang)
	for _, s := range []mcp.Source{own, things} {
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Stop() })
	}
	for begun := time.Now(); !things.IsReady(); time.Sleep(time.Millisecond) { // a real socket knows no fake time
		if time.Since(begun) > 10*time.Second {
			t.Fatal("the things at home are not known")
		}
	}
	h := &home{t: t, lang: lang, router: router.New(router.Options{}, own, things, firmware{})}
	t.Cleanup(h.router.Close)
	h.brain = New(Options{Prompts: phraseTexts(t), Name: "Xiaozhi", Now: now, Zone: householdTime.Location()})
	return h
}

// worldOf returns services of the world, with answers that are always the same.
func worldOf(t *testing.T, lang text.Lang) local.World {
	t.Helper()
	now := func() time.Time { return householdTime }
	meteo := openmeteo.New(t, now)
	forecast, err := weather.New(weather.Options{Base: meteo.URL(), Place: "杭州", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	site := feeds.New(t, feeds.Item{Title: "Rain floods the valley", About: "Two bridges are closed."}, feeds.Item{Title: "Chess final tonight", About: "The champion plays white."}, feeds.Item{Title: "New moon rocket", About: "It starts on Friday."})
	if lang.IsChinese() {
		site.Publish(feeds.Item{Title: "山谷暴雨成灾", About: "两座桥封闭。"}, feeds.Item{Title: "今晚象棋决赛", About: "冠军执红先行。"}, feeds.Item{Title: "新的登月火箭", About: "周五发射。"})
	}
	reader, err := news.New(news.Options{Feeds: map[string][]string{string(lang): {site.URL() + "/rss"}}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	engine := websearch.New(t, websearch.Page{Title: "Tea", URL: "https://www.example.org/tea", Text: "Tea is a drink of leaves."})
	pages, err := search.New(search.Options{Kind: search.SearXNG, Base: engine.URL()})
	if err != nil {
		t.Fatal(err)
	}
	return local.World{Forecast: forecast, Feeds: reader, Search: pages}
}

// houseOf returns a Home Assistant with things of that language.
func houseOf(t *testing.T, lang text.Lang) *homes.Home {
	t.Helper()
	thing := func(id, name, area, state string) homeassistant.Thing {
		return homeassistant.Thing{ID: id, Area: area, State: state, Attributes: map[string]any{"friendly_name": name}}
	}
	things := []homeassistant.Thing{
		thing("light.kitchen", "Kitchen Light", "Kitchen", "off"), thing("light.ceiling", "Ceiling", "Living Room", "on"), thing("light.floor", "Floor Lamp", "Living Room", "off"), thing("light.bed", "Bedside Lamp", "Bedroom", "off"),
		thing("cover.blinds", "Blinds", "Bedroom", "open"), thing("climate.ac", "Air Conditioner", "Bedroom", "cool"), thing("fan.fan", "Fan", "Office", "off"), thing("media_player.tv", "TV", "Living Room", "playing"),
		thing("switch.coffee", "Coffee Machine", "Kitchen", "off"), thing("scene.movie", "Movie Time", "", "scening"), thing("scene.night", "Good Night", "", "scening"),
	}
	if lang.IsChinese() {
		things = []homeassistant.Thing{
			thing("light.kitchen", "厨房灯", "厨房", "off"), thing("light.ceiling", "吊灯", "客厅", "on"), thing("light.floor", "落地灯", "客厅", "off"), thing("light.bed", "床头灯", "卧室", "off"),
			thing("cover.blinds", "窗帘", "卧室", "open"), thing("climate.ac", "空调", "卧室", "cool"), thing("fan.fan", "风扇", "书房", "off"), thing("media_player.tv", "电视", "客厅", "playing"),
			thing("switch.coffee", "咖啡机", "厨房", "off"), thing("scene.movie", "观影模式", "", "scening"), thing("scene.night", "睡眠模式", "", "scening"),
		}
	}
	things = append(things, homeassistant.Thing{ID: "sensor.bedroom", Area: lang.Pick("卧室", "Bedroom"), State: "21.5", Attributes: map[string]any{"friendly_name": lang.Pick("温度", "Temperature"), "device_class": "temperature", "unit_of_measurement": "°C"}})
	f := homeassistant.NewHouse(t, things...)
	c, err := web.NewClient(web.ClientOptions{Base: f.URL(), Headers: map[string]string{"Authorization": "Bearer " + servicetest.Key}, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	return homes.New(homes.Options{Client: c})
}

// turn says something and carries out what the brain wants, step by step.
func (h *home) turn(said string) {
	h.calls, h.said, h.fallback = nil, "", false
	h.past = append(h.past, providers.Message{Role: providers.RoleUser, Content: said})
	for again, steps := true, 0; again && steps < 5; steps++ {
		again = false
		req := providers.LLMRequest{Messages: h.past, Language: string(h.lang), Zone: householdTime.Location(), Tools: h.offers()}
		for delta, err := range h.brain.Generate(h.t.Context(), req) {
			if err != nil {
				h.t.Fatal(err)
			}
			h.said += delta.Text
			h.fallback = h.fallback || delta.Fallback
			h.past = append(h.past, providers.Message{Role: providers.RoleAssistant, Content: delta.Text, ToolCalls: delta.ToolCalls})
			for _, call := range delta.ToolCalls {
				out := h.run(call)
				again = again || out.Again
				h.said += out.Say
				h.past = append(h.past, providers.Message{Role: providers.RoleTool, ToolCallID: call.ID, Content: out.Text})
			}
		}
	}
	h.past[len(h.past)-1].Content = h.said // the last words stand in the history as they were heard
	if last := h.past[len(h.past)-1]; last.Role == providers.RoleTool {
		h.past = append(h.past, providers.Message{Role: providers.RoleAssistant, Content: h.said})
	}
}

func (h *home) offers() []providers.ToolSpec {
	var specs []providers.ToolSpec
	for _, o := range h.router.Offers() {
		specs = append(specs, providers.ToolSpec{Name: o.LLMName, Description: o.Tool.Description, Parameters: o.Tool.Schema})
	}
	return specs
}

// run makes a call as a turn does.
func (h *home) run(call providers.ToolCall) mcp.Outcome {
	h.calls = append(h.calls, call.Name+" "+call.Arguments)
	info := mcp.Info{Agent: "home", Language: string(h.lang), Zone: householdTime.Location()}
	p, refused := h.router.Prepare(mcp.Call{ID: call.ID, Name: call.Name, Arguments: call.Arguments, Language: string(h.lang)})
	if refused != nil {
		return refused.Outcome(string(h.lang))
	}
	out := h.router.Run(mcp.WithInfo(h.t.Context(), info), p).Outcome(string(h.lang))
	if out.Handler == nil {
		return out
	}
	if out.Handler.FuncName != mcp.HandlerTimer {
		return mcp.Outcome{Text: "ok", Say: fmt.Sprint(out.Handler.Args)}
	}
	args, err := mcp.DecodeArgs[mcp.TimerArgs](out.Handler.Args)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.timer(args)
}

// timer carries out an order about timers as a conversation does, in fewer words.
func (h *home) timer(args mcp.TimerArgs) mcp.Outcome {
	if args.Action == mcp.TimerSet {
		h.timers = append(h.timers, args)
		return mcp.Outcome{Text: "ok", Say: args.Due.Format("01-02 15:04 ") + args.Text + " " + args.Repeat}
	}
	kind := func(a mcp.TimerArgs) bool {
		return args.Kind == "" || args.Kind == "timer" && !a.Reminder || args.Kind == "alert" && (a.Reminder || a.Text != "")
	}
	of := h.timers
	if slices.ContainsFunc(of, kind) {
		of = slices.DeleteFunc(slices.Clone(of), func(a mcp.TimerArgs) bool { return !kind(a) })
	}
	if len(of) == 0 {
		return mcp.Outcome{Text: message.In(h.lang, "agent/timer-none"), Again: true}
	}
	if args.Action == mcp.TimerList {
		return mcp.Outcome{Text: h.show(of), Again: true}
	}
	var meant []mcp.TimerArgs
	for _, a := range of {
		if args.All || args.Text == "" && len(of) == 1 || isMeant(a, args.Text) {
			meant = append(meant, a)
		}
	}
	if len(meant) == 0 {
		return mcp.Outcome{Text: message.In(h.lang, "agent/timer-which") + h.show(of), Again: true}
	}
	if args.Action == mcp.TimerChange {
		return h.change(meant, args)
	}
	names := ""
	for _, a := range meant {
		names += a.Text
	}
	return mcp.Outcome{Text: "ok", Say: names + h.brain.say("timer_cancelled", h.lang)}
}

// change moves the one timer that is meant, as agent/feature/alarm does.
func (h *home) change(meant []mcp.TimerArgs, args mcp.TimerArgs) mcp.Outcome {
	if len(meant) != 1 {
		return mcp.Outcome{Text: message.In(h.lang, "agent/timer-change-which") + h.show(meant), Again: true}
	}
	due := meant[0].Due.Add(time.Duration(args.By) * time.Second)
	if args.To != "" {
		at, _, err := spoken.Reset(args.To, due, householdTime)
		if err != nil {
			return mcp.Outcome{Text: err.Error(), Again: true, Failed: true}
		}
		due = at
	}
	return mcp.Outcome{Text: "ok", Say: due.Format("01-02 15:04 ") + meant[0].Text}
}

// isMeant reports whether words mean a timer, as agent/feature/alarm decides it.
func isMeant(a mcp.TimerArgs, said string) bool {
	words, own := text.Bare(said), text.Bare(a.Text)
	if own != "" && words != "" && (strings.Contains(words, own) || strings.Contains(own, words)) {
		return true
	}
	if at, clock := spoken.AtClock(said, a.Due); clock {
		return at
	}
	if in, part := spoken.InPart(said, a.Due, householdTime); part {
		return in
	}
	if day, err := spoken.Day(said, householdTime); err == nil {
		return day.Format(time.DateOnly) == a.Due.Format(time.DateOnly)
	}
	at, err := spoken.Time(said, householdTime)
	return err == nil && at.Equal(a.Due) || !a.Reminder && strings.Contains(words, text.Bare(spoken.SayDuration(a.Due.Sub(householdTime), text.English)))
}

// show lists timers as a conversation does.
func (h *home) show(all []mcp.TimerArgs) string {
	var views []map[string]string
	for _, a := range all {
		left := spoken.SayDuration(a.Due.Sub(householdTime), h.lang)
		v := map[string]string{"due": spoken.SayTime(a.Due, householdTime, h.lang), "left": left}
		if a.Text != "" {
			v["text"] = a.Text
		}
		if !a.Reminder {
			v["length"] = left
		}
		if a.Repeat != "" {
			v["repeats"] = spoken.SayRepeat(a.Repeat, a.Due, h.lang)
		}
		views = append(views, v)
	}
	shown, err := json.Marshal(views)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(shown)
}

// firmware is a speaker with the tools of standard firmware.
type firmware struct{ mcp.Source }

func (firmware) GetAvailableTools() []mcp.Tool {
	level := `{"type":"object","properties":{%q:{"type":"integer","minimum":0,"maximum":100}},"required":[%q]}`
	return []mcp.Tool{
		{Name: "self.get_device_status", Description: "Provides the real-time information of the device.", Origin: mcp.Remote, Source: "device"},
		{Name: "self.audio_speaker.set_volume", Description: "Set the volume of the audio speaker.", Schema: fmt.Appendf(nil, level, "volume", "volume"), Origin: mcp.Remote, Source: "device"},
		{Name: "self.screen.set_brightness", Description: "Set the brightness of the screen.", Schema: fmt.Appendf(nil, level, "brightness", "brightness"), Origin: mcp.Remote, Source: "device"},
		{Name: "self.screen.set_theme", Description: "Set the theme of the screen.", Schema: json.RawMessage(`{"type":"object","properties":{"theme":{"type":"string"}},"required":["theme"]}`), Origin: mcp.Remote, Source: "device"},
		{Name: "self.camera.take_photo", Description: "Take a photo and explain it.", Schema: json.RawMessage(`{"type":"object","properties":{"question":{"type":"string"}},"required":["question"]}`), Origin: mcp.Remote, Source: "device"},
	}
}

func (firmware) CallTool(_ context.Context, name string, _ map[string]any) (any, error) {
	if name == "self.get_device_status" {
		return `{"audio_speaker":{"volume":40},"screen":{"brightness":50,"theme":"light"},"battery":{"level":64,"charging":false},"network":{"type":"wifi","ssid":"home","signal":"strong"}}`, nil
	}
	return true, nil
}
