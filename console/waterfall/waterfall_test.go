package waterfall

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
	"xiaozhi/store"
)

var update = flag.Bool("update", false, "rewrite the pictures of testdata")

// recorded reads turns that a server has kept: typed, spoken with tools and a head start, with members that fail or are
// overtaken, long and interrupted, failed, by the button, and one whose recogniser failed.
func recorded(t testing.TB) map[string]*store.Turn {
	t.Helper()
	data, err := os.ReadFile("testdata/turns.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]*store.Turn
	if err := json.Unmarshal(data, &all); err != nil || len(all) < 7 {
		t.Fatal(len(all), err)
	}
	return all
}

// TestPictures holds the pictures of recorded turns to those that somebody has looked at.
func TestPictures(t *testing.T) {
	t.Parallel()
	for name, turn := range recorded(t) {
		for _, lang := range []text.Lang{text.English, text.Chinese} {
			file := filepath.Join("testdata", name+"."+string(lang)+".svg")
			got := string(Draw(turn, lang).SVG)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				t.Errorf("%s is another picture (-update writes it): %v", file, err)
			}
			checkSVG(t, file, got)
		}
	}
}

// TestPartsAddUp: the parts of the wait are what the user waited, to the millisecond, and the first frame stands there.
func TestPartsAddUp(t *testing.T) {
	t.Parallel()
	for name, turn := range recorded(t) {
		p := Draw(turn, text.English)
		var sum time.Duration
		for _, part := range p.Parts {
			sum += part.Time
		}
		if sum != turn.E2E || sum != p.Wait || sum == 0 || len(p.Parts) != 5 {
			t.Errorf("%s: %v, the user waited %v", name, p.Parts, turn.E2E)
		}
		if stored := turn.EOU + turn.ASR + turn.TTFS + turn.TTFB + turn.Added; stored != turn.E2E {
			t.Errorf("%s: what is kept adds up to %v, the user waited %v", name, stored, turn.E2E)
		}
		spans, err := timeline.ReadSpans(turn.Spans)
		if frame := spans.Marks[timeline.MarkFrame]; err != nil || frame != turn.E2E.Milliseconds() {
			t.Errorf("%s: the first frame left at %d, %v", name, frame, err)
		}
	}
	over := store.Turn{EOU: 700 * time.Millisecond, ASR: 300 * time.Millisecond, TTFS: 400 * time.Millisecond, Added: time.Millisecond, E2E: 900 * time.Millisecond}
	var sum time.Duration
	for _, part := range Sum(&over, text.English) { // as earlier versions have counted
		sum += part.Time
	}
	if sum != over.E2E {
		t.Errorf("%v", sum)
	}
	if p := Draw(&store.Turn{TTFS: time.Second}, text.English); p.Parts != nil || p.Formula() != "nothing was heard" {
		t.Errorf("%+v", p)
	}
}

// TestWords: a failed turn names the span that failed, and the table says the same as the picture.
func TestWords(t *testing.T) {
	t.Parallel()
	all := recorded(t)
	p := Draw(all["failed"], text.English)
	if !strings.HasPrefix(p.Fault, "Model: broken failed after ") || !strings.Contains(p.Fault, "overloaded") {
		t.Error(p.Fault)
	}
	if zh := Draw(all["failed"], text.Chinese).Fault; !strings.HasPrefix(zh, "模型失败：broken 在 ") {
		t.Error(zh)
	}
	if p := Draw(all["hedged"], text.English); p.Fault != "" {
		t.Error("others took over:", p.Fault)
	}
	if p := Draw(&store.Turn{Fault: "the wire broke"}, text.English); p.Fault != "The turn failed: the wire broke" {
		t.Error(p.Fault)
	}
	p = Draw(all["hedged"], text.English)
	table := string(p.Table())
	for _, want := range []string{"sluggish", "overtaken", "failed: broken: chat", "self.lamp.get_state"[5:], "does something", "As a table"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q", want)
		}
	}
	if len(p.Rows) != strings.Count(table, "<tr>")-1 || len(p.Rows) < 12 {
		t.Errorf("%d rows", len(p.Rows))
	}
	if f := Draw(all["failed"], text.English).Figure(); !strings.Contains(string(f), `class="wf-fault"`) || strings.Contains(string(f), "style=") {
		t.Error(f)
	}
	if all := Draw(all["long"], text.English); strings.Count(string(all.SVG), ` · swift`) > maxSentences+2 || !strings.Contains(string(all.SVG), "cut short") {
		t.Error("a long turn is drawn whole, or does not say that it was cut")
	}
}

// TestHostile: what services and tools have called themselves is text.
func TestHostile(t *testing.T) {
	t.Parallel()
	const evil = `"><script>alert(1)</script>{{.}}`
	turn := &store.Turn{ID: "x" + evil, Fault: evil, E2E: time.Second, LLMName: evil, Spans: timeline.Spans{
		Zero: 1, End: timeline.EndVoice, Marks: map[timeline.Mark]int64{timeline.MarkFrame: 1000, timeline.MarkEndpoint: 1 << 62, timeline.MarkStop: -1 << 62},
		Attempts: []timeline.SpanAttempt{{Op: "think", Provider: evil, At: -1 << 62, Took: 1 << 62, Outcome: timeline.Failed, Fault: evil}, {Op: evil, Provider: evil}},
		Tools:    []timeline.SpanTool{{Name: evil, Way: evil, Kind: evil, Took: 1 << 62}},
	}.String()}
	p := Draw(turn, text.English)
	checkSVG(t, "hostile", string(p.SVG))
	if f := string(p.Figure()); strings.Contains(f, "<script") {
		t.Error(f)
	}
	for _, broken := range []string{"{", `{"attempts":[{"at":"x"}]}`, "[]", "null"} {
		checkSVG(t, broken, string(Draw(&store.Turn{Spans: broken}, text.Chinese).SVG))
	}
}

// FuzzDraw: whatever a record holds, it gives a picture.
func FuzzDraw(f *testing.F) {
	for _, turn := range recorded(f) {
		f.Add(turn.Spans)
	}
	f.Fuzz(func(t *testing.T, spans string) {
		checkXML(t, "fuzz", string(Draw(&store.Turn{ID: "a", Spans: spans, E2E: time.Second}, text.English).SVG))
	})
}

// allowed are the attributes of the pictures: nothing that a policy without inline style would block.
var allowed = []string{"class", "xmlns", "role", "viewBox", "width", "height", "aria-labelledby", "id", "x", "y", "rx", "x1", "y1", "x2", "y2", "d", "text-anchor"}

// checkXML returns the texts of a picture.
func checkXML(t *testing.T, name, svg string) (texts []box) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	var open *box
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			at := map[string]string{}
			for _, a := range e.Attr {
				if !slices.Contains(allowed, a.Name.Local) {
					t.Fatalf("%s: attribute %s", name, a.Name.Local)
				}
				at[a.Name.Local] = a.Value
			}
			if e.Name.Local == "script" {
				t.Fatalf("%s: a script", name)
			}
			if e.Name.Local == "text" {
				open = &box{anchor: at["text-anchor"], class: at["class"]}
				open.x, _ = strconv.ParseFloat(at["x"], 64)
				open.y, _ = strconv.ParseFloat(at["y"], 64)
			}
		case xml.CharData:
			if open != nil {
				open.text = string(e)
				texts = append(texts, *open)
				open = nil
			}
		}
	}
}

// box is a text of a picture.
type box struct {
	x, y                float64
	anchor, class, text string
}

func (b box) edges() (left, right float64) {
	w := textWidth(b.text, bodySize)
	switch b.anchor {
	case "middle":
		return b.x - w/2, b.x + w/2
	case "end":
		return b.x - w, b.x
	}
	return b.x, b.x + w
}

var named = regexp.MustCompile(`<svg [^>]*role="img"[^>]*aria-labelledby="[^"]+"[^>]*><title id="[^"]+">[^<]+</title><desc id="[^"]+">[^<]+</desc>`)

// checkSVG: it is XML with a name and a description, nothing that a policy forbids, and no two texts overlap.
func checkSVG(t *testing.T, name, svg string) {
	t.Helper()
	if !named.MatchString(svg) {
		t.Errorf("%s: it has no name", name)
	}
	texts := checkXML(t, name, svg)
	for i, a := range texts {
		l1, r1 := a.edges()
		if l1 < -1 || r1 > width+1 {
			t.Errorf("%s: %q goes beyond the picture: %.0f to %.0f", name, a.text, l1, r1)
		}
		for _, b := range texts[i+1:] {
			l2, r2 := b.edges()
			if dy := a.y - b.y; dy > -11 && dy < 11 && l1 < r2 && l2 < r1 {
				t.Errorf("%s: %s overlaps", name, fmt.Sprintf("%q with %q", a.text, b.text))
			}
		}
	}
}
