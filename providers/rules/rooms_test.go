package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/testall"
	"xiaozhi/internal/text"
)

// TestHomeSaidBriefly: which room is asked where lights are in several, and the answer is taken with what was asked.
func TestHomeSaidBriefly(t *testing.T) {
	for _, c := range []struct {
		lang                       text.Lang
		said, question, room, want string
	}{
		{text.English, "turn on the lights", "In which room: Bedroom, Kitchen, Living Room, Office", "the kitchen please", `home_switch {"area":"Kitchen","kind":"light","state":"on"}`},
		{text.Chinese, "把灯打开", "哪个房间的：", "厨房的", `home_switch {"area":"厨房","kind":"light","state":"on"}`},
		{text.English, "turn the lights off", "In which room", "all of them", `home_switch {"kind":"light","state":"off"}`},
	} {
		h := newHome(t, c.lang)
		if h.turn(c.said); len(h.calls) > 0 || !strings.HasPrefix(h.said, c.question) {
			t.Errorf("%s: %s %s", c.said, h.calls, h.said)
		}
		if h.turn(c.room); len(h.calls) != 1 || h.calls[0] != c.want {
			t.Errorf("%s, %s: %s %s, want %s", c.said, c.room, h.calls, h.said, c.want)
		}
		if h.turn(c.room); len(h.calls) > 0 { // it was answered
			t.Errorf("%s again: %s", c.room, h.calls)
		}
	}
}

// TestHomeArguments: what is set, and by how much.
func TestHomeArguments(t *testing.T) {
	testall.Arithmetic(t)
	for _, lang := range []text.Lang{text.English, text.Chinese} {
		h := newHome(t, lang)
		for said, want := range map[string]string{
			"make the floor lamp red":               `home_set {"color":"red","name":"Floor Lamp"}`,
			"turn the floor lamp up by ten percent": `home_set {"by":10,"name":"Floor Lamp"}`,
			"dim the ceiling":                       `home_set {"by":-20,"name":"Ceiling"}`,
			"floor lamp to full brightness":         `home_set {"name":"Floor Lamp","value":100}`,
			"make the bedroom warmer":               `home_set {"area":"Bedroom","by":1}`,
			"set the ac to 21":                      `home_set {"kind":"climate","temperature":21}`,
			"put the air conditioner on cool":       `home_set {"mode":"cool","name":"Air Conditioner"}`,
			"turn off all the lights":               `home_switch {"kind":"light","state":"off"}`,
			"hey xiaozhi open the blinds please":    `home_switch {"name":"Blinds","state":"on"}`,
			"落地灯调成红色":                               `home_set {"color":"红色","name":"落地灯"}`,
			"吊灯调到最亮":                                `home_set {"name":"吊灯","value":100}`,
			"空调制冷":                                  `home_set {"mode":"cool","name":"空调"}`,
			"空调调高一度":                                `home_set {"by":1,"name":"空调"}`,
			"把所有的灯都关了":                              `home_switch {"kind":"light","state":"off"}`,
			"电视下一个":                                 `home_media {"action":"next","name":"电视"}`,
			"小智帮我把窗帘拉开好吗":                           `home_switch {"name":"窗帘","state":"on"}`,
		} {
			if text.Of(said) != lang {
				continue
			}
			h.past = nil
			if h.turn(said); len(h.calls) != 1 || h.calls[0] != want {
				t.Errorf("%s: %s %s, want %s", said, h.calls, h.said, want)
			}
		}
	}
}

// TestManyRooms: a house of the size that tools list is read in a few milliseconds.
func TestManyRooms(t *testing.T) {
	var names, areas []string
	for i := range 60 {
		names, areas = append(names, fmt.Sprintf("%q", fmt.Sprintf("Lamp %d", i))), append(areas, fmt.Sprintf("%q", fmt.Sprintf("Room %d", i)))
	}
	tools := worldTools(fmt.Sprintf(`home_switch {"type":"object","properties":{"name":{"type":"string","enum":[%s]},"area":{"type":"string","enum":[%s,7,null]},"state":{"type":"string"}},"required":["state"]}`, strings.Join(names, ","), strings.Join(areas, ",")))
	b, begun := newBrain(t, false), time.Now()
	for range 10 {
		if got := show(generate(t, b, ask("switch lamp 59 off", "en", tools))); got != `home_switch {"name":"Lamp 59","state":"off"}` {
			t.Fatal(got)
		}
	}
	if took := time.Since(begun) / 10; took > 200*time.Millisecond {
		t.Errorf("%v", took)
	} else {
		t.Log(took)
	}
}

// TestHomePosition: a tool whose name only sounds like one of a home works nothing of it.
func TestHomePosition(t *testing.T) {
	b := newBrain(t, false)
	for _, one := range []string{`self_arm_set_home {"type":"object","properties":{}}`, `home_set {"type":"object","properties":{"speed":{"type":"integer"}}}`, `go_home_switch {"type":"object","properties":{"name":{"type":"string"}}}`} {
		for _, said := range []string{"set the lights to 50", "turn the lights off", "把灯调到百分之五十"} {
			if d := generate(t, b, ask(said, languageOf(said), worldTools(one))); len(d.ToolCalls) > 0 {
				t.Errorf("%s with %s: %s", said, one, show(d))
			}
		}
	}
}
