package device

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"xiaozhi/mcp"
)

// TestClientRestoresTools: what the device had before the program ended is offered before it says anything, is kept once,
// and gives way to other firmware.
func TestClientRestoresTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept []string
		keep := func(doc string) { kept = append(kept, doc) }
		cache := NewListCache("")
		first := connected(t, NewFakeDevice(t), Options{Lists: cache, Device: "aa:bb", Keep: keep})
		want := first.GetAvailableTools()
		_ = first.Stop()
		again := connected(t, NewFakeDevice(t), Options{Lists: cache, Device: "aa:bb", Keep: keep})
		_ = again.Stop()
		if len(kept) != 1 || len(want) == 0 {
			t.Fatalf("%d tools were kept %d times", len(want), len(kept))
		}

		d, release := NewFakeDevice(t), make(chan struct{})
		d.Answer = func(r FakeRequest) ([]string, bool) {
			if r.Method == methodInitialize {
				<-release
			}
			return nil, false
		}
		told := 0
		c := d.Client(Options{Lists: NewListCache(""), Device: "aa:bb", Keep: keep, OnTools: func() { told++ }})
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer c.Stop()
		synctest.Wait()
		for _, bad := range []string{"", "{", `{"Tools":[{"Name":"x"}]}`, `{"Tools":[{"Schema":"{}"}]}`} {
			if err := c.Restore(bad); err == nil || len(c.GetAvailableTools()) > 0 {
				t.Errorf("%q: %v, %d tools", bad, err, len(c.GetAvailableTools()))
			}
		}
		if err := c.Restore(kept[0]); err != nil || !reflect.DeepEqual(c.GetAvailableTools(), want) || told != 1 || c.IsReady() {
			t.Errorf("restored: %v, told %d times, ready %v\ngot  %+v\nwant %+v", err, told, c.IsReady(), c.GetAvailableTools(), want)
		}
		if err := c.Restore(`{"Tools":[{"Name":"x","Schema":"{}"}]}`); err != nil || c.HasTool("x") {
			t.Errorf("a second list counts: %v", err)
		}
		close(release)
		synctest.Wait()
		if !c.IsReady() || len(kept) != 1 || told != 1 {
			t.Errorf("the same list: ready %v, kept %d times, told %d times", c.IsReady(), len(kept), told)
		}
		if err := c.Restore(strings.Replace(kept[0], "self.echo", "self.other", 1)); err != nil || c.HasTool("self.other") {
			t.Errorf("it takes the place of what was read: %v", err)
		}
		for range 2 {
			c.options.Lists.Forget("aa:bb")
		}
		if _, ok := c.options.Lists.last.Peek("aa:bb"); ok {
			t.Error("it is not forgotten")
		}
	})
}

// FuzzRestore: whatever is kept, nothing but tools within the limits comes back, and what comes back stays so.
func FuzzRestore(f *testing.F) {
	f.Add(`{"Info":{"Name":"board"},"Tools":[{"Name":"self.lamp","Description":"x","Schema":"{}","Kind":"query","Annotations":{"audience":["user"]}}]}`)
	f.Add(`{"Tools":[{"Name":"a","Schema":"1"},{"Name":"a","Schema":"2"}]}`)
	f.Fuzz(func(t *testing.T, doc string) {
		info, tools, err := decodeList(doc)
		if err != nil {
			return
		}
		if len(tools) > mcp.MaxTools {
			t.Errorf("%d tools", len(tools))
		}
		again, ok := encodeList(info, tools)
		if !ok {
			t.Fatalf("%+v has no form", tools)
		}
		info2, tools2, err := decodeList(again)
		if err != nil || info2 != info || len(tools2) != len(tools) {
			t.Errorf("%v: %+v became %+v", err, tools, tools2)
		}
	})
}

// TestRestoreLimits: a list that was kept by a version with other limits is cut.
func TestRestoreLimits(t *testing.T) {
	saved := savedList{}
	for i := range mcp.MaxTools + 5 {
		saved.Tools = append(saved.Tools, savedTool{Name: fmt.Sprint("t", i), Schema: "{}"})
	}
	doc, err := json.Marshal(saved)
	if err != nil {
		t.Fatal(err)
	}
	if _, tools, err := decodeList(string(doc)); err != nil || len(tools) != mcp.MaxTools {
		t.Errorf("%d tools, %v", len(tools), err)
	}
}
