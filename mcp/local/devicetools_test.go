package local_test

import (
	"errors"
	"strings"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
)

func TestDeviceStatus(t *testing.T) {
	s := local.New(local.Options{})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	plain := standard()
	plain.answers["self.get_device_status"] = "all is well"
	broken := standard()
	broken.answers["self.get_device_status"] = errors.New("gone")
	for name, test := range map[string]struct {
		device   *fakeDevice
		language string
		action   mcp.Action
		want     string
	}{
		"firmware, zh": {standard(), "zh", mcp.ActionTypeReqLLM, "音量50，屏幕亮度80，屏幕主题light，电量77%，正在充电，网络wifi home，信号strong，芯片温度42度"},
		"firmware, en": {standard(), "en", mcp.ActionTypeReqLLM, "volume 50, screen brightness 80, screen theme light, battery at 77%, charging, network wifi home, signal strong, chip at 42 °C"},
		"other words":  {plain, "zh", mcp.ActionTypeReqLLM, "all is well"},
		"things":       {things(), "zh", mcp.ActionTypeReqLLM, "Lamp.get_state: {\"brightness\":1}\nSpeaker.get_state: {\"volume\":6}\nScreen.GetState: {\"Screen\":{\"brightness\":{\"value\":3}}}"},
		"gone":         {broken, "zh", mcp.ActionTypeError, "MCP工具调用失败: self.get_device_status: gone"},
		"none":         {light(), "en", mcp.ActionTypeError, "this device does not tell its status"},
	} {
		t.Run(name, func(t *testing.T) {
			box := beside(t, test.device, local.Options{})
			ctx := mcp.WithPeer(mcp.WithInfo(t.Context(), mcp.Info{Language: test.language}), box.Peer("c1"))
			got, err := s.CallTool(ctx, "get_device_status", nil) // called by others than the model too
			r, ok := got.(mcp.ActionResponse)
			if err != nil || !ok || r.Action != test.action || r.Result != any(test.want) {
				t.Errorf("got %+v, %v, want %v %s", got, err, test.action, test.want)
			}
		})
	}
}

func TestTakePhoto(t *testing.T) {
	for name, test := range map[string]struct {
		device    *fakeDevice
		arguments string
		want      mcp.PhotoArgs
	}{
		"a tool without a question": {light(), `{"question":"谁在门口？"}`, mcp.PhotoArgs{Question: "谁在门口？", Tool: "snap_picture"}},
		"no question":               {light(), `{"question":" "}`, mcp.PhotoArgs{Question: "画面里有什么？", Tool: "snap_picture"}},
		"an odd name": {
			device("light", nil, "camera_look(prompt:string)"), `{"question":"x"}`,
			mcp.PhotoArgs{Question: "x", Tool: "camera_look", Argument: "prompt"},
		},
	} {
		r := call(t, beside(t, test.device, local.Options{}), "zh", "take_photo", test.arguments)
		want := mcp.ActionResponseCall{FuncName: "mcp_handler_take_photo", Args: test.want}
		if r.Action != mcp.ActionTypeCallHandler || r.Result != any(want) {
			t.Errorf("%s: %+v, want %+v", name, r, want)
		}
	}
}

func TestConversationTools(t *testing.T) {
	box := beside(t, nil, local.Options{Roles: []string{"poet", "teacher"}})
	for name, test := range map[string]struct{ tool, arguments, want string }{
		"a role":           {"change_role", `{"role":"poet"}`, `{"funcName":"mcp_handler_change_role","args":{"role":"poet"}}`},
		"back":             {"change_role", `{"role":"original"}`, `{"funcName":"mcp_handler_change_role","args":{"role":""}}`},
		"forget":           {"forget_conversation", ``, `{"funcName":"mcp_handler_forget","args":null}`},
		"exit":             {"exit", `{}`, `{"funcName":"mcp_handler_exit","args":{}}`},
		"timer":            {"set_timer", `{"seconds":90}`, `{"funcName":"mcp_handler_timer","args":{"action":"set","due":"2026-11-21T15:05:35+08:00"}}`},
		"timer, words":     {"set_timer", `{"duration":"一个半小时","text":" 煮蛋 "}`, `{"funcName":"mcp_handler_timer","args":{"action":"set","due":"2026-11-21T16:34:05+08:00","text":"煮蛋"}}`},
		"reminder":         {"set_reminder", `{"time":"明天早上七点","text":"开会"}`, `{"funcName":"mcp_handler_timer","args":{"action":"set","reminder":true,"due":"2026-11-22T07:00:00+08:00","text":"开会"}}`},
		"reminder, ISO":    {"set_reminder", `{"time":"2026-11-22T00:00:00Z","text":"x"}`, `{"funcName":"mcp_handler_timer","args":{"action":"set","reminder":true,"due":"2026-11-22T08:00:00+08:00","text":"x"}}`},
		"every day":        {"set_reminder", `{"time":"每天早上七点","text":"x"}`, `{"funcName":"mcp_handler_timer","args":{"action":"set","reminder":true,"due":"2026-11-21T07:00:00+08:00","repeat":"FREQ=DAILY","text":"x"}}`},
		"a rule":           {"set_reminder", `{"time":"07:00","repeat":"FREQ=WEEKLY;BYDAY=MO","text":"x"}`, `{"funcName":"mcp_handler_timer","args":{"action":"set","reminder":true,"due":"2026-11-22T07:00:00+08:00","repeat":"FREQ=WEEKLY;BYDAY=MO","text":"x"}}`},
		"a rule's words":   {"set_reminder", `{"time":"at 7","repeat":"every second tuesday","text":"x"}`, `{"funcName":"mcp_handler_timer","args":{"action":"set","reminder":true,"due":"2026-11-21T07:00:00+08:00","repeat":"FREQ=WEEKLY;INTERVAL=2;BYDAY=TU","text":"x"}}`},
		"snooze":           {"snooze_timer", `{"duration":"五分钟"}`, `{"funcName":"mcp_handler_timer","args":{"action":"snooze","due":"2026-11-21T15:09:05+08:00"}}`},
		"change to":        {"change_timer", `{"text":"面包","time":"七点半"}`, `{"funcName":"mcp_handler_timer","args":{"action":"change","text":"面包","to":"七点半"}}`},
		"change by":        {"change_timer", `{"add":"2 minutes","kind":"timer"}`, `{"funcName":"mcp_handler_timer","args":{"action":"change","kind":"timer","by":120}}`},
		"change earlier":   {"change_timer", `{"add":"-半小时","kind":"reminder"}`, `{"funcName":"mcp_handler_timer","args":{"action":"change","kind":"alert","by":-1800}}`},
		"snooze a while":   {"snooze_timer", `{}`, `{"funcName":"mcp_handler_timer","args":{"action":"snooze","due":"2026-11-21T15:14:05+08:00"}}`},
		"cancel timers":    {"cancel_timer", `{"all":true,"kind":"timer"}`, `{"funcName":"mcp_handler_timer","args":{"action":"cancel","kind":"timer","all":true}}`},
		"cancel reminders": {"cancel_timer", `{"all":true,"kind":"reminder"}`, `{"funcName":"mcp_handler_timer","args":{"action":"cancel","kind":"alert","all":true}}`},
		"list":             {"list_timers", ``, `{"funcName":"mcp_handler_timer","args":{"action":"list"}}`},
		"cancel one":       {"cancel_timer", `{"text":"开会"}`, `{"funcName":"mcp_handler_timer","args":{"action":"cancel","text":"开会"}}`},
		"cancel all":       {"cancel_timer", `{"all":true}`, `{"funcName":"mcp_handler_timer","args":{"action":"cancel","all":true}}`},
	} {
		r := call(t, box, "zh", test.tool, test.arguments)
		if got := mcp.ResultText(r); r.Action != mcp.ActionTypeCallHandler || got != test.want {
			t.Errorf("%s: %s %s, want %s", name, r.Action, got, test.want)
		}
	}
}

// TestTimesOtherLanguages: in a turn of another language a model writes times as programs do.
func TestTimesOtherLanguages(t *testing.T) {
	box := beside(t, nil, local.Options{})
	for _, lang := range []string{"ja", "de", "ru"} {
		for tool, arguments := range map[string]string{"set_reminder": `{"time":"2026-11-22T07:00","text":"会議"}`, "set_timer": `{"duration":"PT10M"}`} {
			if r := call(t, box, lang, tool, arguments); r.Action != mcp.ActionTypeCallHandler {
				t.Errorf("%s in %s: %s %s", tool, lang, r.Action, mcp.ResultText(r))
			}
		}
	}
}

func TestConversationToolErrors(t *testing.T) {
	box := beside(t, nil, local.Options{Roles: []string{"poet"}})
	for name, test := range map[string]struct{ language, tool, arguments, want string }{
		"no length":      {"zh", "set_timer", `{"text":"x"}`, "要多久？请给出 seconds 或 duration"},
		"nonsense":       {"en", "set_timer", `{"duration":"soon"}`, `"soon": "soon" is no length of time such as 10分钟 or 2h30m`},
		"no such date":   {"en", "set_reminder", `{"time":"on February 30","text":"x"}`, `"on February 30": this date does not exist`},
		"没有这天":           {"zh", "set_reminder", `{"time":"2月30日","text":"x"}`, `"2月30日": 没有这个日期`},
		"past":           {"zh", "set_reminder", `{"time":"今天早上七点","text":"x"}`, `"今天早上七点": 这个时间已经过去了`},
		"too far":        {"zh", "set_reminder", `{"time":"5000天后","text":"x"}`, `"5000天后": 不能超过一年`},
		"no such role":   {"en", "change_role", `{"role":"pirate"}`, `invalid arguments for change_role: argument "role": enum: pirate does not equal any of: [poet original]`},
		"too many":       {"en", "set_timer", `{"seconds":99999999}`, `invalid arguments for set_timer: argument "seconds": maximum: 99999999 is greater than 31622400`},
		"no words":       {"en", "set_reminder", `{"time":"at 7"}`, `invalid arguments for set_reminder: required: missing properties: ["text"]`},
		"zh nonsense":    {"zh", "set_timer", `{"duration":"很久"}`, `"很久": 不明白这个时间，请写成“10分钟”“明天早上七点”或 ISO 8601 的样子`},
		"negative":       {"en", "set_timer", `{"seconds":-5}`, `invalid arguments for set_timer: argument "seconds": minimum: -5 is less than 1`},
		"明日三時":           {"ja", "set_reminder", `{"time":"明日三時","text":"x"}`, `"明日三時": not understood in this language; write it as in ISO 8601: 2026-11-24T07:00 for a time, PT10M for a length, 2026-11-24 for a day`},
		"十分":             {"ja", "set_timer", `{"duration":"十分"}`, `"十分": not understood in this language; write it as in ISO 8601: 2026-11-24T07:00 for a time, PT10M for a length, 2026-11-24 for a day`},
		"in 5 Minuten":   {"de", "set_timer", `{"duration":"in 5 Minuten"}`, `"in 5 Minuten": not understood in this language; write it as in ISO 8601: 2026-11-24T07:00 for a time, PT10M for a length, 2026-11-24 for a day`},
		"past, Japanese": {"ja", "set_reminder", `{"time":"2020-01-01T07:00","text":"x"}`, `"2020-01-01T07:00": that time has passed`},
		"length of zero": {"en", "set_timer", `{"duration":"0 minutes"}`, `"0 minutes": it is no length of time such as 10分钟 or 2h30m`},
	} {
		r := call(t, box, test.language, test.tool, test.arguments)
		if got := mcp.ResultText(r); r.Action != mcp.ActionTypeError || got != test.want {
			t.Errorf("%s: %s %s, want %s", name, r.Action, got, test.want)
		}
	}
	if _, refused := beside(t, nil, local.Options{}).Prepare(mcp.Call{Name: "change_role"}); refused == nil {
		t.Error("change_role is offered without roles")
	}
}

// Roles come and go while the source runs.
func TestSetRoles(t *testing.T) {
	s := local.New(local.Options{})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	before := len(s.GetAvailableTools())
	s.SetRoles([]string{"poet"})
	tools := s.GetAvailableTools()
	if last := tools[len(tools)-1]; len(tools) != before+1 || last.Name != "change_role" || !strings.Contains(string(last.Schema), `["poet","original"]`) {
		t.Errorf("%d tools, the last is %s %s", len(tools), last.Name, last.Schema)
	}
	if s.SetRoles(nil); len(s.GetAvailableTools()) != before || s.HasTool("change_role") {
		t.Error("change_role is offered without roles")
	}
}
