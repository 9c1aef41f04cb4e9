package app

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/internal/outward"
	"xiaozhi/mcp"
	"xiaozhi/mcp/iot"
)

// TestOutsideShowsDevice: a connected device is listed with its tools, states and
// words, and no more once it has left.
func TestOutsideShowsDevice(t *testing.T) {
	o := newOutside()
	c := conversationOf(t, o, "aa:bb", "x")
	c.words.Add("user", "hello")
	things := iot.New(iot.Options{Send: func(json.RawMessage) error { return nil }})
	if err := things.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	things.Deliver(json.RawMessage(`[{"name":"Lamp","description":"","properties":{"power":{"type":"boolean"}},"methods":{}}]`), json.RawMessage(`[{"name":"Lamp","state":{"power":true}}]`))
	c.sources = []mcp.Source{oneTool{name: "y"}, things}
	o.devices.Add(c)
	list := o.List()
	if len(list) != 1 || list[0].ID != "aa:bb" || list[0].Tools != 1 || list[0].Name != "kitchen" || list[0].Language != "en" {
		t.Errorf("%+v", list)
	}
	if offers, ok := o.Offers("aa:bb"); !ok || len(offers) != 1 || offers[0].Tool.Name != "x" {
		t.Errorf("offers %v, %v", offers, ok)
	}
	if states, ok := o.States("aa:bb"); !ok || states["Lamp"]["power"] != true {
		t.Errorf("states %v, %v", states, ok)
	}
	if lines, ok := o.Transcript("aa:bb"); !ok || len(lines) != 1 {
		t.Errorf("transcript %v, %v", lines, ok)
	}
	o.devices.Remove(c)
	_, offers := o.Offers("aa:bb")
	_, states := o.States("aa:bb")
	_, lines := o.Transcript("aa:bb")
	if offers || states || lines {
		t.Errorf("of one that left: %v, %v, %v", offers, states, lines)
	}
}

// TestOutsideErrorLanguage: what is to be done to a device that is not connected is
// an error in the language of the caller.
func TestOutsideErrorLanguage(t *testing.T) {
	o := newOutside()
	for language, want := range map[string]string{"zh": "设备已经断开", "en": feature.ErrOver.Error()} {
		ctx := mcp.WithInfo(t.Context(), mcp.Info{Language: language})
		_, said := o.Say(ctx, "x", "hello", true)
		_, asked := o.Ask(ctx, "x", "hello")
		_, cut := o.Abort(ctx, "x")
		for _, err := range []error{said, asked, cut, o.Listen(ctx, "x")} {
			if err == nil || err.Error() != want {
				t.Errorf("%s: %v, want %s", language, err, want)
			}
		}
	}
	if got := outward.InLanguage(t.Context(), fmt.Errorf("the device left: %w", feature.ErrOver)).Error(); got != "设备已经断开" {
		t.Errorf("a device that leaves meanwhile: %s", got)
	}
	if got := outward.InLanguage(t.Context(), fmt.Errorf("say: %w", remote.ErrManual)).Error(); got != "这台设备只在按住按钮时聆听" {
		t.Errorf("in Chinese: %s", got)
	}
}
