package main

import (
	"encoding/json"
	"hash/fnv"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"xiaozhi/internal/openaitest"
)

// cloud is the scripted cloud of one talk. It recognises the words that the talk
// says are spoken, answers by its book, and speaks in tones.
type cloud struct {
	*openaitest.Server
	book map[string]answer

	mu    sync.Mutex
	heard string
}

// answer is one entry of the book: the model says something, or calls tools.
type answer struct {
	says  []string
	calls []call
	reply *openaitest.Reply // in place of both
}

type call struct{ tool, arguments string }

func says(pieces ...string) answer { return answer{says: pieces} }
func calls(tool, arguments string) answer {
	return answer{calls: []call{{tool, arguments}}}
}

func startCloud(book map[string]answer) (*cloud, error) {
	server, err := openaitest.New()
	if err != nil {
		return nil, err
	}
	c := &cloud{Server: server, book: book}
	c.Handle(openaitest.Transcribe, c.transcribe)
	c.Handle(openaitest.Chat, c.chat)
	c.Handle(openaitest.Speak, speech)
	return c, nil
}

// hear sets the words that are recognised from now on.
func (c *cloud) hear(words string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = words
}

func (c *cloud) transcribe(*openaitest.Request) openaitest.Reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard == "FAIL" {
		return openaitest.Failure(http.StatusInternalServerError, "no ears")
	}
	text, err := json.Marshal(map[string]string{"text": c.heard})
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return openaitest.JSON(http.StatusOK, string(text))
}

// chat answers the last message of a request.
func (c *cloud) chat(r *openaitest.Request) openaitest.Reply {
	var body struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil || len(body.Messages) == 0 {
		return openaitest.Failure(http.StatusBadRequest, "no messages")
	}
	last := body.Messages[len(body.Messages)-1]
	text := string(last.Content)
	if last.Role == "tool" {
		return openaitest.Text("The tool ", "is done.")
	}
	for part, a := range c.book {
		if !strings.Contains(text, part) {
			continue
		}
		if a.reply != nil {
			return *a.reply
		}
		if len(a.calls) == 0 {
			return openaitest.Text(a.says...)
		}
		var out []openaitest.Call
		for i, call := range a.calls {
			name := "no_such_tool"
			for _, t := range body.Tools {
				if letters(t.Function.Name) == letters(call.tool) {
					name = t.Function.Name
				}
			}
			out = append(out, openaitest.Call{ID: "call" + string(rune('1'+i)), Name: name, Arguments: call.arguments})
		}
		return openaitest.Calls(out...)
	}
	return openaitest.Text("All right. ", "That is it.")
}

// letters is a name without what names of tools are joined by.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '.' || r == '-' {
			return -1
		}
		return r
	}, name)
}

// speech is a tone for each text, 30 ms a letter, whose height depends on the text.
func speech(r *openaitest.Request) openaitest.Reply {
	input, _ := r.JSON()["input"].(string)
	if strings.Contains(input, "mute") {
		return openaitest.Failure(http.StatusInternalServerError, "no voice")
	}
	input = normal([]string{clock.ReplaceAllString(input, "CLOCK")})[0] // the time of day sounds alike
	h := fnv.New32()
	_, _ = h.Write([]byte(input))
	length := time.Duration(max(8, utf8.RuneCountInString(strings.TrimSpace(input)))) * 30 * time.Millisecond
	return openaitest.Sound("audio/pcm", openaitest.Tone(24000, float64(200+h.Sum32()%600), length), 9600)
}
