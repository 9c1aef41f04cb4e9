package local_test

import (
	"errors"
	"strings"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
)

const firmware = `{"audio_speaker":{"volume":50},"screen":{"brightness":80,"theme":"light"},"battery":{"level":77,"charging":true},"network":{"type":"wifi","ssid":"home","signal":"strong"},"chip":{"temperature":41.5}}`

// The devices of the three dialects.
func standard() *fakeDevice {
	return device("device", map[string]any{"self.get_device_status": firmware, "self.audio_speaker.set_volume": "true", "self.screen.set_brightness": "true"},
		"self.get_device_status", "self.audio_speaker.set_volume(volume:integer:0:100)", "self.screen.set_brightness(brightness:integer:0:100)", "self.camera.take_photo(question:string)")
}

func light() *fakeDevice {
	return device("light", map[string]any{"amplify_volume": map[string]any{"status": "success"}}, "amplify_volume(level:integer)", "snap_picture")
}

func things() *fakeDevice {
	return device("iot", map[string]any{
		"Speaker.get_state": map[string]any{"volume": 6}, "Screen.GetState": `{"Screen":{"brightness":{"value":3}}}`, "Lamp.get_state": map[string]any{"brightness": 1},
		"Speaker.SetVolume": nil, "Screen.SetBrightness": nil,
	}, "Lamp.SetBrightness(brightness:number)", "Lamp.get_state", "Speaker.get_state", "Speaker.SetVolume(volume:number:0:10)", "Screen.GetState", "Screen.SetBrightness(brightness:number:1:5)")
}

// TestNoDoubles: what the device can do under a good name is not offered twice.
func TestNoDoubles(t *testing.T) {
	all := []string{"set_volume", "adjust_volume", "set_brightness", "adjust_brightness", "get_device_status", "take_photo"}
	for name, test := range map[string]struct {
		device *fakeDevice
		want   string
	}{
		"standard":  {standard(), "adjust_volume adjust_brightness"},
		"light":     {light(), "set_volume take_photo"},
		"iot":       {things(), "adjust_volume adjust_brightness get_device_status"},
		"lamp only": {device("device", nil, "self.lamp.set_brightness(brightness:integer)", "self.led.get_state"), "get_device_status"},
		"nothing":   {device("device", nil), ""},
		"odd": {
			device("device", nil, "set_volume(a:object)", "volume(x:integer:9:1)", "get_mic_volume", "photo(question:string)"),
			"set_volume get_device_status",
		},
	} {
		if got := offered(beside(t, test.device, local.Options{}), all...); got != test.want {
			t.Errorf("%s: offered %q, want %q", name, got, test.want)
		}
	}
	if got := offered(beside(t, nil, local.Options{}), all...); got != "" {
		t.Errorf("without a device: offered %q", got)
	}
}

func TestLevels(t *testing.T) {
	for name, test := range map[string]struct {
		device          *fakeDevice
		language        string
		tool, arguments string
		calls           string // what the device gets
		say             string // what the user hears
	}{
		"louder":             {standard(), "zh", "adjust_volume", `{"change":"大一点"}`, `self.get_device_status{} self.audio_speaker.set_volume{"volume":60}`, "音量已调到60"},
		"louder in English":  {standard(), "en", "adjust_volume", `{"change":"up"}`, `self.get_device_status{} self.audio_speaker.set_volume{"volume":60}`, "The volume is now 60."},
		"by so much":         {standard(), "zh", "adjust_volume", `{"change":"down","by":"25"}`, `self.get_device_status{} self.audio_speaker.set_volume{"volume":25}`, "音量已调到25"},
		"mute":               {standard(), "zh", "adjust_volume", `{"change":"静音"}`, `self.audio_speaker.set_volume{"volume":0}`, "音量已调到0"},
		"not below 0":        {standard(), "zh", "adjust_volume", `{"change":"小80"}`, `self.get_device_status{} self.audio_speaker.set_volume{"volume":0}`, "音量已调到0"},
		"brighter":           {standard(), "en", "adjust_brightness", `{"change":"a lot brighter"}`, `self.get_device_status{} self.screen.set_brightness{"brightness":100}`, "The screen brightness is now 100."},
		"light dialect":      {light(), "zh", "set_volume", `{"volume":80}`, `amplify_volume{"level":80}`, "音量已调到80"},
		"a scale of ten":     {things(), "zh", "adjust_volume", `{"change":"up"}`, `Speaker.get_state{} Speaker.SetVolume{"volume":7}`, "音量已调到70"},
		"a scale of 1 to 5":  {things(), "zh", "adjust_brightness", `{"change":"再亮一点，亮25"}`, `Screen.GetState{} Screen.SetBrightness{"brightness":4}`, "屏幕亮度已调到75"},
		"already at the end": {device("device", map[string]any{"get_volume": 100.0, "audio.set_volume": true}, "get_volume", "audio.set_volume(volume:integer)"), "en", "adjust_volume", `{"change":"louder"}`, `get_volume{} audio.set_volume{"volume":100}`, "The volume is already at 100."},
		"in Japanese":        {standard(), "ja", "adjust_volume", `{"change":"up"}`, `self.get_device_status{} self.audio_speaker.set_volume{"volume":60}`, ""}, // the model says it
	} {
		t.Run(name, func(t *testing.T) {
			r := call(t, beside(t, test.device, local.Options{}), test.language, test.tool, test.arguments)
			if test.say == "" {
				if r.Action != mcp.ActionTypeReqLLM || mcp.ResultText(r) != "The volume is now 60." {
					t.Errorf("got %+v, want the model to say it", r)
				}
			} else if r.Action != mcp.ActionTypeResponse || r.Response != test.say {
				t.Errorf("got %+v, want %q to be spoken", r, test.say)
			}
			if got := strings.Join(test.device.calls, " "); got != test.calls {
				t.Errorf("the device got %s, want %s", got, test.calls)
			}
		})
	}
}

func TestLevelFailures(t *testing.T) {
	refusing := standard()
	refusing.answers["self.audio_speaker.set_volume"] = &mcp.ToolError{Message: "no codec"}
	deaf := standard()
	deaf.answers["self.get_device_status"] = errors.New("gone")
	vague := standard()
	vague.answers["self.get_device_status"] = "fine"
	for name, test := range map[string]struct {
		device *fakeDevice
		change string
		want   string
	}{
		"the device refuses":  {refusing, "up", "no codec"},
		"no status":           {deaf, "up", "现在的音量"},
		"a status of nothing": {vague, "up", "现在的音量"},
		"words of nothing":    {standard(), "banana", "大一点"},
		"no words":            {standard(), "", "大一点"},
	} {
		r := call(t, beside(t, test.device, local.Options{}), "zh", "adjust_volume", `{"change":"`+test.change+`"}`)
		if text := mcp.ResultText(r); r.Action != mcp.ActionTypeError || !strings.Contains(text, test.want) {
			t.Errorf("%s: %+v, want an error with %q", name, r, test.want)
		}
	}
	for _, arguments := range []string{`{"volume":101}`, `{"volume":"loud"}`, `{}`} {
		if r := call(t, beside(t, light(), local.Options{}), "zh", "set_volume", arguments); r.Action != mcp.ActionTypeError {
			t.Errorf("set_volume %s: %+v", arguments, r)
		}
	}
}
