package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/feeds"
	"xiaozhi/internal/servicetest/homeassistant"
	"xiaozhi/internal/servicetest/openmeteo"
	"xiaozhi/internal/servicetest/websearch"
	"xiaozhi/internal/testall"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/rules"
)

// line is what somebody says in a dialogue of testdata/dialogues: the calls of tools that follow, and what is answered, by the
// brain without a model and, where it is not the same, by a model that makes the same calls and reads out what they tell.
type line struct {
	said  string
	calls []string // NAME ARGUMENTS
	told  string
	model string
}

// readDialogues reads a file: dialogues with an empty line between them, of each line the words, its calls after two spaces, and the
// answers after ": " and "= ".
func readDialogues(t *testing.T, file string) (all [][]line) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n\n") {
		var d []line
		for row := range strings.Lines(part) {
			row = strings.TrimRight(row, "\n")
			last := len(d) - 1
			switch {
			case strings.HasPrefix(row, "#"):
			case strings.HasPrefix(row, ": "):
				d[last].told = row[2:]
			case strings.HasPrefix(row, "= "):
				d[last].model = row[2:]
			case strings.HasPrefix(row, "  "):
				d[last].calls = append(d[last].calls, row[2:])
			default:
				d = append(d, line{said: row})
			}
		}
		if len(d) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// calling is a brain whose calls are noted.
type calling struct {
	providers.LLM
	mu    sync.Mutex
	calls []string
}

// Generate implements [providers.LLM].
func (c *calling) Generate(ctx context.Context, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		for d, err := range c.LLM.Generate(ctx, req) {
			c.mu.Lock()
			for _, call := range d.ToolCalls {
				c.calls = append(c.calls, call.Name+" "+call.Arguments)
			}
			c.mu.Unlock()
			if !yield(d, err) {
				return
			}
		}
	}
}

// taken returns the calls since it was asked last.
func (c *calling) taken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.calls
	c.calls = nil
	return all
}

// obedient is a model that makes the calls of dialogues and reads out what they tell.
func obedient(dialogues [][]line) *providertest.LLM {
	calls := map[string][]string{}
	for _, d := range dialogues {
		for _, l := range d {
			calls[l.said] = l.calls
		}
	}
	return &providertest.LLM{Answer: func(req providers.LLMRequest) providertest.Step {
		said, made := "", 0
		for _, m := range req.Messages {
			switch m.Role {
			case providers.RoleUser:
				said, made = m.Content, 0
			case providers.RoleTool:
				made++
			default:
			}
		}
		if of := calls[said]; made < len(of) {
			name, arguments, _ := strings.Cut(of[made], " ")
			return providertest.Call(providers.ToolCall{ID: fmt.Sprint("c", len(req.Messages)), Name: name, Arguments: arguments})
		}
		if last := req.Messages[len(req.Messages)-1]; last.Role == providers.RoleTool {
			return providertest.Say(gist(last.Content))
		}
		return providertest.Say("Hm.")
	}}
}

// gist is what of a result is worth reading out: of the words of others the titles and texts, of all else everything.
func gist(result string) string {
	var told struct {
		Headlines []struct{ Title string }
		Results   []struct{ Text string }
		Text      string
	}
	if json.Unmarshal([]byte(result), &told) != nil {
		return result
	}
	words := told.Text
	for _, h := range told.Headlines {
		words += h.Title + ". "
	}
	for _, r := range told.Results {
		words += r.Text + " "
	}
	return cmp.Or(strings.TrimSpace(words), result)
}

// neighbourhood is the world that the dialogues are about: real sockets, which nothing stays connected to, as fake time stands still while
// something is awaited from one.
type neighbourhood struct {
	weather, news, search, home string
	house                       *homeassistant.House
}

// start is when fake time begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func newNeighbourhood(t *testing.T, lang text.Lang) neighbourhood {
	t.Helper()
	closing := func(at string) string {
		to, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(to)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			proxy.ServeHTTP(w, r)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	thing := func(id, zh, en, room, area, state string) homeassistant.Thing {
		return homeassistant.Thing{ID: id, Area: lang.Pick(room, area), State: state, Attributes: map[string]any{"friendly_name": lang.Pick(zh, en)}}
	}
	house := homeassistant.NewHouse(t,
		thing("light.kitchen", "厨房灯", "Kitchen Light", "厨房", "Kitchen", "off"), thing("light.ceiling", "吊灯", "Ceiling", "客厅", "Living Room", "on"),
		thing("light.floor", "落地灯", "Floor Lamp", "客厅", "Living Room", "off"), thing("light.bed", "床头灯", "Bedside Lamp", "卧室", "Bedroom", "off"),
		thing("cover.blinds", "窗帘", "Blinds", "卧室", "Bedroom", "open"), thing("fan.fan", "风扇", "Fan", "书房", "Office", "off"),
		thing("media_player.tv", "电视", "TV", "客厅", "Living Room", "playing"), thing("switch.coffee", "咖啡机", "Coffee Machine", "厨房", "Kitchen", "off"),
		thing("scene.movie", "观影模式", "Movie Time", "", "", "scening"),
		homeassistant.Thing{ID: "climate.ac", Area: lang.Pick("卧室", "Bedroom"), State: "cool", Attributes: map[string]any{"friendly_name": lang.Pick("空调", "Air Conditioner"), "temperature": 24.0}},
		homeassistant.Thing{ID: "sensor.bedroom", Area: lang.Pick("卧室", "Bedroom"), State: "21.5", Attributes: map[string]any{"friendly_name": lang.Pick("温度", "Temperature"), "device_class": "temperature", "unit_of_measurement": "°C"}},
	)
	news := []feeds.Item{{Title: "Rain floods the valley", About: "Two bridges are closed."}, {Title: "Chess final tonight", About: "The champion plays white."}, {Title: "New moon rocket", About: "It starts on Friday."}}
	if lang.IsChinese() {
		news = []feeds.Item{{Title: "山谷暴雨成灾", About: "两座桥封闭。"}, {Title: "今晚象棋决赛", About: "冠军执红先行。"}, {Title: "新的登月火箭", About: "周五发射。"}}
	}
	return neighbourhood{
		weather: closing(openmeteo.New(t, func() time.Time { return start }).URL()), news: closing(feeds.New(t, news...).URL()) + "/rss",
		search: closing(websearch.New(t, websearch.Page{Title: "Tea", URL: "https://www.example.org/tea", Text: lang.Pick("茶是叶子泡的饮料。", "Tea is a drink of leaves.")}).URL()),
		home:   closing(house.URL()), house: house,
	}
}

// TestDialogues: what people ask at home in their own words, by a device that speaks the protocol, without a model and with one: which
// tools are called with which arguments, and what is said. It begins on Saturday, the first of January 2000, at midnight.
func TestDialogues(t *testing.T) {
	for _, lang := range []text.Lang{text.English, text.Chinese} {
		dialogues := readDialogues(t, filepath.Join("testdata", "dialogues", string(lang)+".txt"))
		for _, with := range []string{"rules", "model"} {
			t.Run(string(lang)+"/"+with, func(t *testing.T) {
				place := newNeighbourhood(t, lang)
				brain := &calling{}
				s := script{replace: func(h *harness, o *agent.Options) {
					h.app.cfg.Tools.Weather.City, h.app.cfg.Tools.Weather.BaseURL = lang.Pick("杭州", "Hangzhou"), place.weather
					h.app.cfg.Tools.News.Feeds = map[string][]string{string(lang): {place.news}}
					h.app.cfg.Tools.Search.Service, h.app.cfg.Tools.Search.BaseURL = "searxng", place.search
					h.app.cfg.Tools.Home.URL, h.app.cfg.Tools.Home.Token = place.home, servicetest.Key
					brain.LLM = obedient(dialogues)
					if with == "rules" {
						brain.LLM = rules.New(rules.Options{Prompts: o.Prompts.Phrase, Name: "Xiaozhi", Zone: time.UTC})
					}
					o.LLM, o.Features = brain, features(h.app.reminders(h.t.Context(), h.app.stored), h.app.outside.letters, nil, h.app.outside.known, nil)
				}}
				inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
					time.Sleep(time.Second) // what there is at home is known
					for i := 0; i < len(dialogues); i += testall.Pick(1, 10) {
						time.Sleep(time.Until(start.Add(time.Duration(i+1) * 18 * time.Second)))
						d := h.speaker(ctx, t, devicetest.Options{DeviceID: fmt.Sprintf("24:6f:28:bb:%02x:%02x", i/256, i%256), Tools: devicetest.NewBoard().Tools()[:5]})
						time.Sleep(time.Second) // its tools are known by then
						for _, l := range dialogues[i] {
							h.check(ctx, t, d, brain, l, with == "rules")
						}
						d.Close()
					}
				})
			})
		}
	}
}

// check says a line and looks at what follows.
func (h *harness) check(ctx context.Context, t *testing.T, d *devicetest.Device, brain *calling, l line, plain bool) {
	t.Helper()
	if err := d.Detect(l.said); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	r, err := d.WaitReply(ctx)
	if err != nil {
		t.Fatalf("%s: %v", l.said, err)
	}
	want := l.told
	if !plain {
		want = cmp.Or(l.model, l.told)
	}
	made := strings.Join(brain.taken(), "\n  ")
	if wanted := strings.Join(l.calls, "\n  "); made != wanted || r.Text() != want && (plain || len(l.calls) > 0) {
		t.Errorf("%s\n  %s\n: %s\nwant\n  %s\n: %s", l.said, made, r.Text(), wanted, want)
	}
}
