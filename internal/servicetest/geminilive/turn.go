package geminilive

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// input holds sound of the microphone and marks of the client.
type input struct {
	Audio *struct {
		Data []byte `json:"data"`
		Type string `json:"mimeType"`
	} `json:"audio"`
	Text  string  `json:"text"`
	End   bool    `json:"audioStreamEnd"`
	Start *object `json:"activityStart"`
	Stop  *object `json:"activityEnd"`
}

// content holds turns of text.
type content struct {
	Turns []struct {
		Role  string `json:"role"`
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	} `json:"turns"`
	Complete bool `json:"turnComplete"`
}

// results are those of tools.
type results struct {
	List []struct {
		ID       string           `json:"id"`
		Name     string           `json:"name"`
		Response *json.RawMessage `json:"response"`
	} `json:"functionResponses"`
}

// hear takes sound and marks.
func (t *talk) hear(in *input) bool {
	manual := t.setup.Input.Detection.Disabled
	switch {
	case (in.Start != nil || in.Stop != nil) && !manual:
		return t.wrong("Explicit activity control is not supported when automatic activity detection is enabled.")
	case in.Start != nil:
		t.speaking = true
		return t.interrupt()
	case in.Stop != nil && t.speaking:
		return t.heardAll()
	case in.End && !manual && t.speaking:
		return t.heardAll()
	case in.Text != "":
		return t.interrupt() && t.answer(in.Text, true)
	case in.Audio == nil:
		return true
	case !strings.HasPrefix(in.Audio.Type, "audio/pcm"):
		return t.wrong("Unsupported input audio type: " + in.Audio.Type)
	}
	sound := in.Audio.Data
	if t.line.Fault() == servicetest.Ends && t.heard < inRate && t.heard+len(sound) >= inRate {
		return t.goAway()
	}
	if manual {
		if t.speaking {
			t.heard += len(sound)
			t.ear.Hear(sound)
		}
		return true
	}
	return t.detect(sound)
}

// detect finds where the user speaks.
func (t *talk) detect(sound []byte) bool {
	t.heard += len(sound)
	t.ear.Hear(sound)
	if servicetest.Loud(sound) {
		t.quiet = 0
		if t.speaking {
			return true
		}
		t.speaking = true
		return t.setup.Input.Handling == "NO_INTERRUPTION" || t.interrupt()
	}
	t.quiet += len(sound)
	wait := silence
	if ms := t.setup.Input.Detection.Silence; ms > 0 {
		wait = time.Duration(ms) * time.Millisecond
	}
	if !t.speaking || t.quiet < int(wait.Seconds()*inRate*2) {
		return true
	}
	return t.heardAll()
}

// goAway says so, and does.
func (t *talk) goAway() bool {
	if t.say(object{"goAway": object{"timeLeft": "0.050s"}}) && t.line.Pause(50*time.Millisecond) {
		t.line.End(websocket.CloseGoingAway, "The service is going away")
	}
	return false
}

// heardAll answers what was said.
func (t *talk) heardAll() bool {
	words := t.ear.Rest()
	t.heard, t.quiet, t.speaking = 0, 0, false
	if t.line.Fault() == servicetest.Late {
		t.line.Hold()
		return false
	}
	if t.setup.Heard != nil {
		for _, p := range servicetest.Thirds(words) {
			if p != "" {
				t.send(step{o: object{"serverContent": object{"inputTranscription": object{"text": p}}}})
			}
		}
	}
	return t.answer(words, true)
}

// read takes turns of text. They interrupt an answer.
func (t *talk) read(c *content) bool {
	last := ""
	for _, turn := range c.Turns {
		if turn.Role != "user" && turn.Role != "model" || len(turn.Parts) == 0 || turn.Parts[0].Text == "" {
			return t.wrong("Request contains an invalid argument.")
		}
		last = turn.Parts[0].Text
	}
	if !t.interrupt() {
		return false
	}
	return !c.Complete || t.answer(last, true)
}

// resume takes results of tools, and answers when none is missing.
func (t *talk) resume(r *results) bool {
	var all []string
	for _, one := range r.List {
		if name, is := t.calls[one.ID]; !is || name != one.Name || one.Response == nil || !strings.HasPrefix(string(*one.Response), "{") {
			return t.wrong("Request contains an invalid argument: function response without its call.")
		}
		delete(t.calls, one.ID)
		var fields struct{ Output, Error json.RawMessage }
		_ = json.Unmarshal(*one.Response, &fields) // another shape has neither
		all = append(all, strings.Trim(string(fields.Output)+string(fields.Error), `"`))
	}
	return len(t.calls) > 0 || t.answer(strings.Join(all, " "), false)
}

// answer speaks, or calls the tools that the words ask for. A frame may hold several
// members; words run ahead of their sound and lag behind it.
func (t *talk) answer(words string, calls bool) bool {
	if tools := servicetest.Asked(words, t.tools); calls && len(tools) > 0 {
		var list []object
		for _, tool := range tools {
			t.count++
			id := fmt.Sprintf("function-call-%d", t.count)
			t.calls[id] = tool.Name
			list = append(list, object{"id": id, "name": tool.Name, "args": json.RawMessage(servicetest.Arguments(tool.Schema))})
		}
		t.send(step{result: true, o: object{"toolCall": object{"functionCalls": list}, "usageMetadata": object{"totalTokenCount": 20}}})
		return true
	}
	text := servicetest.Answer(words)
	lines := servicetest.Thirds(text)
	n := 4800
	if t.line.Fault() == servicetest.Odd {
		n = 4801
	}
	sound := servicetest.Pieces(servicetest.Speech(text, outRate), n)
	for i, p := range sound {
		c := object{"modelTurn": object{"role": "model", "parts": []object{{"inlineData": object{"data": p, "mimeType": "audio/pcm;rate=24000"}}}}}
		if i < 2 && t.setup.Spoken != nil {
			c["outputTranscription"] = object{"text": lines[i]}
		}
		t.send(step{result: true, o: object{"serverContent": c}})
	}
	if t.setup.Spoken != nil {
		t.send(step{o: object{"serverContent": object{"outputTranscription": object{"text": lines[2]}}}})
	}
	t.send(step{o: object{"serverContent": object{"generationComplete": true}}},
		step{after: true, o: object{"serverContent": object{"turnComplete": true}, "usageMetadata": object{"totalTokenCount": 50, "promptTokenCount": 20, "responseTokenCount": 30}}})
	if t.setup.Resume != nil {
		t.send(step{o: object{"sessionResumptionUpdate": object{"newHandle": handle, "resumable": true}}})
	}
	return true
}

// interrupt ends an answer that is being sent, and calls that wait.
func (t *talk) interrupt() bool {
	running := false
	for _, s := range t.queue {
		running = running || s.after
	}
	t.queue = nil
	if len(t.calls) > 0 {
		var ids []string
		for id := range t.calls {
			ids = append(ids, id)
		}
		clear(t.calls)
		return t.say(object{"toolCallCancellation": object{"ids": ids}})
	}
	return !running || t.say(object{"serverContent": object{"interrupted": true}}) && t.say(object{"serverContent": object{"turnComplete": true}})
}
