package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/providers"
)

// afterTool turns the newest result into the next call, or into a sentence.
// in is the zero intent where the result answers something that no rule covers.
func (r request) afterTool(in intent, res result) (providers.Delta, bool) {
	if reason, bad := failure(res.text); bad {
		if reason == "" {
			return r.text(phraseFailedPlain)
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
		return r.battery(data)
	case actStatus:
		if now, ok := number(data, string(volume)); ok {
			return r.text(phraseStatus, "volume", strconv.Itoa(now))
		}
	case actStop, actNext, actPause:
		return r.text(phraseOK)
	case actExit:
		return r.text(phraseGoodbye)
	case actTimer:
		return r.text(phraseTimerSet, "duration", spokenLength(in.length, r.lang))
	default:
	}
	if spoken := sentence(data); spoken != "" {
		return providers.Delta{Text: spoken}, true
	}
	return r.text(phraseDone)
}

// levelDone says what a level was set to.
func (r request) levelDone(in intent, res result) (providers.Delta, bool) {
	var arguments map[string]any
	if json.Unmarshal([]byte(res.call.Arguments), &arguments) == nil {
		for _, v := range arguments {
			if n, ok := v.(float64); ok {
				id := map[level]string{volume: phraseVolumeSet, brightness: phraseBrightnessSet}[in.level]
				return r.text(id, "value", strconv.Itoa(int(n)))
			}
		}
	}
	return r.text(phraseDone)
}

func (r request) battery(data any) (providers.Delta, bool) {
	parts, _ := data.(map[string]any)
	battery := data
	if inner, ok := parts["battery"].(map[string]any); ok {
		battery = inner
		parts = inner
	}
	charge, ok := number(battery, "level")
	if !ok {
		charge, ok = number(battery, "battery")
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
