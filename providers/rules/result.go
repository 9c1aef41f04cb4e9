package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/providers"
)

// afterTool turns the newest result into the next call, or into a sentence.
// in is the zero intent where the result answers something that no rule covers.
func (r request) afterTool(in intent, res result) (providers.Delta, bool) {
	if reason, bad := failure(res.text); bad {
		reason = strings.TrimRight(reason, " .。!！\n")
		if reason == "" || (text.Of(reason) == text.Chinese) != r.lang.IsChinese() {
			return r.text(phraseFailedPlain) // a reason in the other language stays in the log
		}
		return r.text(phraseFailed, "reason", reason)
	}
	status, fromStatus := teller(r.tools, in)
	fromStatus = fromStatus && status.spec.Name == res.call.Name
	data := decode(res.text)
	switch in.act {
	case actUp, actDown, actSet, actMax, actMin:
		if !fromStatus {
			return r.levelDone(in, res)
		}
		if now, ok := number(data, string(in.level)); ok {
			return r.moveLevel(in, now)
		}
		return r.text(phraseNotTold)
	case actAsk:
		now, ok := number(data, string(in.level))
		if !ok {
			return r.text(phraseNotTold)
		}
		return r.text(map[level]string{volume: phraseVolumeIs, brightness: phraseBrightnessIs}[in.level], "value", strconv.Itoa(now))
	case actBattery:
		return r.battery(res.call.Name, data)
	case actStatus:
		if now, ok := number(data, string(volume)); ok {
			return r.text(phraseStatus, "volume", strconv.Itoa(now))
		}
	case actStop, actNext, actPause:
		return r.text(phraseOK)
	case actExit:
		return r.text(phraseGoodbye)
	case actTimer:
		return r.text(phraseTimerSet, "duration", spoken.SayInOneUnit(in.length, r.lang))
	case actTimers, actLeft:
		if spoken, ok := r.timers(theOnes(data, in, r.said)); ok {
			return spoken, true
		}
	case actDocuments:
		if said, ok := r.quote(in, data); ok {
			return said, true
		}
	case actCancel, actCancelAll, actChange:
		if spoken, ok := r.which(res.text); ok {
			return spoken, true
		}
	case actNetwork:
		if name := stringOf(data, "ssid"); name != "" {
			return r.text(phraseNetwork, "name", name)
		}
		return r.text(phraseNotTold)
	case actNews, actDetails, actSearch:
		if spoken, ok := (outside{r}).quoted(res.text); ok {
			return spoken, true
		}
	default:
	}
	if spoken := sentence(data); spoken != "" {
		return providers.Delta{Text: spoken}, true
	}
	return r.text(phraseDone)
}

// levelDone says what a level was set to.
func (r request) levelDone(in intent, res result) (providers.Delta, bool) {
	_, argument, _ := setter(r.tools, in.level)
	var arguments map[string]any
	if json.Unmarshal([]byte(res.call.Arguments), &arguments) != nil {
		return r.text(phraseDone)
	}
	n, ok := arguments[argument].(float64)
	if !ok {
		return r.text(phraseDone)
	}
	id := map[level]string{volume: phraseVolumeSet, brightness: phraseBrightnessSet}[in.level]
	return r.text(id, "value", strconv.Itoa(int(n)))
}

// battery says how full it is. A level of anything else, such as the network's,
// is not the battery's.
func (r request) battery(called string, data any) (providers.Delta, bool) {
	parts, _ := data.(map[string]any)
	charge, ok := number(data, "battery")
	if inner, is := parts["battery"].(map[string]any); is {
		parts = inner
		charge, ok = number(inner, "level")
	}
	if of, is := batteryTool(r.tools); is && of.spec.Name == called { // it talks of nothing else
		if n, is := data.(float64); is {
			charge, ok = int(n), true
		} else if n, is := number(data, "level"); is {
			charge, ok = n, true
		}
	}
	switch {
	case !ok:
		return r.text(phraseNotTold)
	case parts["charging"] == true:
		return r.text(phraseBatteryCharging, "level", strconv.Itoa(charge))
	}
	return r.text(phraseBattery, "level", strconv.Itoa(charge))
}

// failure reports whether a result says that it did not work, and why.
func failure(text string) (reason string, bad bool) {
	switch v := decode(text).(type) {
	case bool:
		return "", !v
	case map[string]any:
		if cause, ok := v["error"]; ok && cause != nil && cause != false && cause != "" {
			return sentence(cause), true
		}
		if v["success"] == false || v["isError"] == true {
			delete(v, "success")
			delete(v, "isError")
			return sentence(v), true
		}
		return "", false
	case string:
		return failureText(strings.TrimSpace(v))
	}
	return "", false
}

// failureText finds the words that failed tools begin with, in the router's
// texts and in those of common tools, and what follows them.
func failureText(text string) (reason string, bad bool) {
	if full, ok := strings.CutPrefix(strings.ToLower(text), "failed to "); ok && full != "" {
		return strings.Trim(text, " .!\n"), true
	}
	for _, mark := range []string{
		"tool call failed", "MCP工具调用失败", "调用工具失败", "工具调用失败", "invalid arguments for", "there is no tool named",
		"error", "failed", "failure", "失败", "错误", "出错",
	} {
		if len(text) < len(mark) || !strings.EqualFold(text[:len(mark)], mark) {
			continue
		}
		reason = strings.Trim(text[len(mark):], " :：,，.。!！\n")
		// "NAME: reason": a tool's name is nothing to be said aloud.
		if name, rest, found := strings.Cut(reason, ": "); found && strings.ContainsAny(name, "._") && !strings.Contains(name, " ") {
			reason = rest
		}
		return reason, true
	}
	return "", false
}

// decode reads a result as JSON, twice where JSON was packed in a JSON string;
// any other text is itself.
func decode(text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	if inner, ok := v.(string); ok {
		var w any
		if json.Unmarshal([]byte(inner), &w) == nil {
			return w
		}
	}
	return v
}

// number finds a number by its key, at any depth, the shallowest and first in
// the order of keys.
func number(data any, key string) (int, bool) {
	m, ok := data.(map[string]any)
	if !ok {
		return 0, false
	}
	if n, ok := m[key].(float64); ok {
		return int(n), true
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if n, ok := number(m[k], key); ok {
			return n, true
		}
	}
	return 0, false
}

// stringOf finds a text by its key as [number] finds a number.
func stringOf(data any, key string) string {
	m, _ := data.(map[string]any)
	if s, ok := m[key].(string); ok {
		return s
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if s := stringOf(m[k], key); s != "" {
			return s
		}
	}
	return ""
}

// sentence makes something that can be said of a result, "" where it says only
// that it worked.
func sentence(data any) string {
	const most = 6
	switch v := data.(type) {
	case nil, bool:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		switch text := strings.TrimSpace(v); strings.ToLower(text) {
		case "ok", "success", "done", "true":
			return ""
		default:
			return text
		}
	case map[string]any:
		for _, key := range []string{"response", "text", "answer", "message", "result", "description", "content", "reason"} {
			if text, ok := v[key].(string); ok && strings.TrimSpace(text) != "" {
				return sentence(text)
			}
		}
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch value := v[key].(type) {
			case float64, string:
				parts = append(parts, fmt.Sprintf("%s %s", strings.ReplaceAll(key, "_", " "), cmp.Or(sentence(value), fmt.Sprint(value))))
			default:
			}
		}
		return strings.Join(parts[:min(len(parts), most)], ", ")
	default:
		return ""
	}
}

// callPrefix begins the ids of the brain's own calls.
const callPrefix = "rules_"

// turn is the state of a request: the user's last words, and the newest result
// since then.
type turn struct {
	said   string
	result *result // nil when the user spoke last
}

// result is the outcome of a tool call.
type result struct {
	call providers.ToolCall
	text string
}

// own reports whether the brain itself made the call.
func (r result) own() bool { return strings.HasPrefix(r.call.ID, callPrefix) }

// readTurn finds the last thing said and what was done about it. It is false
// if there is no request.
func readTurn(messages []providers.Message) (turn, bool) {
	last := len(messages) - 1
	user := last
	for user >= 0 && messages[user].Role != providers.RoleUser {
		user--
	}
	if user < 0 {
		return turn{}, false
	}
	t := turn{said: messages[user].Content}
	if user == last {
		return t, true
	}
	if messages[last].Role != providers.RoleTool {
		return turn{}, false
	}
	t.result = &result{call: callOf(messages, messages[last].ToolCallID), text: messages[last].Content}
	return t, true
}

// callOf finds the newest call with the id.
func callOf(messages []providers.Message, id string) providers.ToolCall {
	for _, m := range slices.Backward(messages) {
		if i := slices.IndexFunc(m.ToolCalls, func(c providers.ToolCall) bool { return c.ID == id }); i >= 0 {
			return m.ToolCalls[i]
		}
	}
	return providers.ToolCall{ID: id}
}

// newCall asks for a tool under an id that the messages do not hold yet.
func newCall(req providers.LLMRequest, t tool, arguments map[string]any) providers.Delta {
	taken := map[string]bool{}
	for _, m := range req.Messages {
		taken[m.ToolCallID] = true
		for _, c := range m.ToolCalls {
			taken[c.ID] = true
		}
	}
	n := 1
	for taken[callPrefix+strconv.Itoa(n)] {
		n++
	}
	text, err := json.Marshal(arguments)
	if err != nil || arguments == nil {
		text = []byte("{}")
	}
	return providers.Delta{ToolCalls: []providers.ToolCall{{
		ID: callPrefix + strconv.Itoa(n), Name: t.spec.Name, Arguments: string(text),
	}}}
}

// langOf returns the language to answer in.
func langOf(req providers.LLMRequest) text.Lang {
	if req.Language != "" {
		return text.Lang(req.Language)
	}
	if t, ok := readTurn(req.Messages); ok && text.Of(t.said) != text.Chinese {
		return text.English
	}
	return text.Chinese
}
