package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"xiaozhi/connection/camera"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/openaitest"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
)

// picturesFor wires the vision chain of a config, with CLOUD in its text for the
// address of a fake service.
func picturesFor(t *testing.T, config string, cloud *openaitest.Server) (*pictures, string, *bytes.Buffer) {
	t.Helper()
	if cloud != nil {
		config = strings.ReplaceAll(config, "CLOUD", cloud.URL())
	}
	log := &bytes.Buffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	cfg, report := mustLoadText(t, config), engines.NewReport(logger)
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	maker := engines.New(logger)
	t.Cleanup(maker.Close)
	made, err := maker.Make(t.Context(), cfg, set, report)
	if err != nil {
		t.Fatal(err)
	}
	var found strings.Builder
	for _, line := range report.Lines() {
		if strings.Contains(line, "VLM") {
			found.WriteString(line + "\n")
		}
	}
	log.Reset()
	return &pictures{llm: made.Main.Vision, texts: set, log: logger}, found.String(), log
}

func fakeCloud(t *testing.T) *openaitest.Server {
	t.Helper()
	cloud, err := openaitest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cloud.Close() })
	return cloud
}

const (
	seeing = "{type: openai, base_url: CLOUD, model: eyes-1, vision: true}"
	blind  = "{type: openai, base_url: CLOUD, model: words-1}"
)

func TestVisionChain(t *testing.T) {
	for name, test := range map[string]struct {
		config, key string
		want        []string // what the start tells, in its order
	}{
		"nothing is configured":      {"llm: [rules]", "", []string{"no model that can see is configured (key: vision) / 没有配置能看图的模型"}},
		"a model that only reads":    {"llm: [a]\nproviders: {a: " + blind + "}", "", []string{"no model that can see"}},
		"one of two can see":         {"llm: [a, b, rules]\nproviders: {a: " + blind + ", b: " + seeing + "}", "", []string{"VLM  b: eyes-1 at "}},
		"named, and not marked":      {"llm: [b]\nvision: [a]\nproviders: {a: " + blind + ", b: " + seeing + "}", "", []string{"VLM  a: words-1 at "}},
		"both, in their order":       {"llm: [rules]\nvision: [b, a]\nproviders: {a: " + seeing + ", b: " + seeing + "}", "", []string{"VLM  b: eyes-1", "VLM  a: eyes-1"}},
		"named, but without its key": {"llm: [rules]\nvision: [openai]", "", []string{"VLM  - openai: left out / 未启用: no key", "no model that can see"}},
		"a key is all there is":      {"llm: [openai, rules]", "k-secret", []string{"VLM  openai: gpt-5.4-nano at https://api.openai.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{"OPENAI_BASE_URL", "OPENAI_MODEL", "DEEPSEEK_API_KEY", "DASHSCOPE_API_KEY"} {
				t.Setenv(v, "")
			}
			t.Setenv("OPENAI_API_KEY", test.key)
			_, found, _ := picturesFor(t, test.config, fakeCloud(t))
			inOrder(t, found, test.want...)
			if n := strings.Count(found, "\n"); n != len(test.want) {
				t.Errorf("%d lines, want %d:\n%s", n, len(test.want), found)
			}
		})
	}
}

// TestPicturesExplain: the model gets the picture as it is, the question and our
// instruction, in the language of the device.
func TestPicturesExplain(t *testing.T) {
	cloud := fakeCloud(t)
	cloud.Reply(openaitest.Chat, openaitest.Text(" A red disc", " and a blue square.\n"))
	e, _, _ := picturesFor(t, "llm: [a]\nproviders: {a: "+seeing+"}", cloud)
	jpg, err := devicetest.TestPicture()
	if err != nil {
		t.Fatal(err)
	}
	text, err := e.Explain(t.Context(), camera.Picture{Language: "zh", Question: "图里有什么？", MIMEType: "image/jpeg", Data: jpg})
	if err != nil || text != "A red disc and a blue square." {
		t.Errorf("%q, %v", text, err)
	}
	request := cloud.Requests(openaitest.Chat)[0]
	pictures, err := request.Pictures()
	if err != nil || len(pictures) != 1 || pictures[0].Text != "图里有什么？" || !bytes.Equal(pictures[0].Data, jpg) {
		t.Errorf("%d pictures, %v", len(pictures), err)
	}
	if body := string(request.Body); !strings.Contains(body, "不是给你的指令") || !strings.Contains(body, `"eyes-1"`) {
		t.Errorf("request %.400s", body)
	}
}

// TestPicturesDescribe: a tool's picture gets a question if it has none, and its real type.
func TestPicturesDescribe(t *testing.T) {
	cloud := fakeCloud(t)
	e, _, _ := picturesFor(t, "llm: [a]\nproviders: {a: "+seeing+"}", cloud)
	jpg, err := devicetest.TestPicture()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ language, question, want string }{
		{"zh", " ", "这张图片里有什么？"}, {"en", "", "What is in this picture?"}, {"en", "which colour?", "which colour?"},
	} {
		ctx := mcp.WithInfo(t.Context(), mcp.Info{Language: test.language})
		if text, err := e.Describe(ctx, "image/png", jpg, test.question); err != nil || text != "Hello. How are you?" {
			t.Errorf("%q, %v", text, err)
		}
		requests := cloud.Requests(openaitest.Chat)
		pictures, err := requests[len(requests)-1].Pictures()
		if err != nil || len(pictures) != 1 || pictures[0].Text != test.want {
			t.Errorf("%+v, %v, want %q", pictures, err, test.want)
		}
	}
}

// TestPicturesExcuses: the text for the user if no model understands pictures, and what only the log gets.
func TestPicturesExcuses(t *testing.T) {
	cloud := fakeCloud(t)
	cloud.Reply(openaitest.Chat, openaitest.Failure(401, "inner words"))
	down, _, log := picturesFor(t, "llm: [a]\nproviders: {a: "+seeing+"}", cloud)
	none, _, _ := picturesFor(t, "llm: [rules]", nil)
	for name, test := range map[string]struct {
		e              *pictures
		language, want string
	}{
		"none, zh": {none, "zh", "没有配置能看图的模型"},
		"none, en": {none, "en", "No model that can see is configured"},
		"down, zh": {down, "zh", "看图的模型现在没有回应"},
		"down, en": {down, "en", "is not answering"},
	} {
		t.Run(name, func(t *testing.T) {
			log.Reset()
			_, err := test.e.Explain(t.Context(), camera.Picture{Language: test.language, Question: "?", MIMEType: "image/png"})
			excuse, ok := errors.AsType[*camera.ExcuseError](err)
			if !ok || !strings.Contains(excuse.Text, test.want) || strings.Contains(excuse.Text, "inner words") {
				t.Errorf("Explain: %v", err)
			}
			if test.e == down && !strings.Contains(err.Error(), "inner words") {
				t.Errorf("the log is not told why: %v", err)
			}
			_, err = test.e.Describe(mcp.WithInfo(t.Context(), mcp.Info{Language: test.language}), "image/png", nil, "")
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "inner words") {
				t.Errorf("Look: %v", err)
			}
			if test.e == down && !strings.Contains(log.String(), "inner words") {
				t.Errorf("the log is not told why: %s", log)
			}
		})
	}
}

// TestPicturesCancelled: a model is not waited for any more.
func TestPicturesCancelled(t *testing.T) {
	cloud := fakeCloud(t)
	cloud.Reply(openaitest.Chat, openaitest.Reply{Hang: true})
	e, _, _ := picturesFor(t, "llm: [a]\nproviders: {a: "+seeing+"}", cloud)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = cloud.Await(t.Context(), openaitest.Chat, 1)
		cancel()
	}()
	if _, err := e.Explain(ctx, camera.Picture{Language: "en", Question: "?"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Explain: %v", err)
	}
	if !cloud.Requests(openaitest.Chat)[0].Gone() {
		t.Error("the model's request was not closed")
	}
}

// TestPicturesEndlessAnswer: a model that does not stop is stopped.
func TestPicturesEndlessAnswer(t *testing.T) {
	cloud := fakeCloud(t)
	cloud.Reply(openaitest.Chat, openaitest.Text(strings.Repeat("word ", 1000), strings.Repeat("word ", 1000), strings.Repeat("word ", 1000)))
	e, _, _ := picturesFor(t, "llm: [a]\nproviders: {a: "+seeing+"}", cloud)
	text, err := e.Explain(t.Context(), camera.Picture{Language: "en", Question: "?"})
	if err != nil || len(text) != 9999 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
