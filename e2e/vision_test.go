package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

const takePhoto = "self_camera_take_photo"

// eyesConfig names a vision model of the fake service.
func eyesConfig(cloud *openaitest.Server) string {
	return "vision: [eyes]\nproviders: {eyes: {type: openai, base_url: \"" + cloud.URL() + "\", model: eyes-1}}\n"
}

// lastRole returns the role and the text of the last message of a chat request.
func lastRole(r *openaitest.Request) (role, content string) {
	var body struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if json.Unmarshal(r.Body, &body) != nil || len(body.Messages) == 0 {
		return "", ""
	}
	last := body.Messages[len(body.Messages)-1]
	return last.Role, string(last.Content)
}

// seeingModel answers pictures with sees, results of tools with says, and
// everything else with a call of tool.
func seeingModel(cloud *openaitest.Server, tool, arguments, sees, says string) {
	cloud.Handle(openaitest.Chat, func(r *openaitest.Request) openaitest.Reply {
		pictures, err := r.Pictures()
		role, _ := lastRole(r)
		switch {
		case err != nil:
			return openaitest.Failure(400, err.Error())
		case len(pictures) > 0:
			return openaitest.Text(sees)
		case role == "tool":
			return openaitest.Text(says)
		}
		return openaitest.Calls(openaitest.Call{ID: "p1", Name: tool, Arguments: arguments})
	})
}

// toolResult returns the tool result that ends the last request that has one.
func toolResult(t *testing.T, cloud *openaitest.Server) string {
	t.Helper()
	for _, r := range slices.Backward(cloud.Requests(openaitest.Chat)) {
		if role, content := lastRole(r); role == "tool" {
			var text string
			if err := json.Unmarshal([]byte(content), &text); err != nil {
				t.Errorf("content of a tool message: %s", content)
			}
			return text
		}
	}
	t.Error("the model was told of no tool")
	return ""
}

// startsBefore checks that the device was put into speaking before it got the
// tool: the tool holds its main task, and a later tts start would wait behind it.
func startsBefore(t *testing.T, d *devicetest.Device, tool string) {
	t.Helper()
	events := d.Events()
	start := slices.IndexFunc(events, func(e devicetest.Event) bool {
		return e.Kind == devicetest.KindReceived && e.Type == "tts" && e.State == "start"
	})
	call := slices.IndexFunc(events, func(e devicetest.Event) bool {
		return e.Kind == devicetest.KindReceived && e.Type == "mcp" && strings.Contains(string(e.Raw), tool)
	})
	if start < 0 || call < 0 || start > call {
		t.Errorf("tts start is event %d, the call of %s is event %d", start, tool, call)
	}
}

// TestTakePhoto goes the whole way of a photo: the model calls the camera, the
// device uploads what it sees, a model that can see explains it, the device
// gives that back as its tool's result, and the first model speaks of it. All
// of the device is frozen meanwhile.
func TestTakePhoto(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	seeingModel(cloud, takePhoto, `{"question":"What lies on the desk?"}`, "A red disc and a blue square.", "I see a red disc.")
	s := start(t, setup{env: cloudEnv(cloud), config: eyesConfig(cloud)})
	d := s.dial(ctx, t, devicetest.Options{Tools: devicetest.NewBoard().Tools(), Quirks: devicetest.Quirks{Freezes: true}})
	s.waitForTools(ctx, t, d)
	for range 2 {
		if r := ask(ctx, t, d, "please describe my desk"); r.Text() != "I see a red disc." || r.Frames == 0 || r.Dropped != 0 {
			t.Errorf("answer %q, %d frames, %d dropped", r.Text(), r.Frames, r.Dropped)
		}
		want := `{"success":true,"action":"RESPONSE","response":"A red disc and a blue square."}`
		if got := toolResult(t, cloud); got != want {
			t.Errorf("the model was told %s, want %s", got, want)
		}
	}
	startsBefore(t, d, "self.camera.take_photo")
	checkPicture(t, cloud)
	token := visionToken(t, d)
	if strings.Contains(s.log.String(), token) {
		t.Error("the token is in the log")
	}
	if !strings.Contains(s.log.String(), "picture explained") {
		t.Error("the log does not tell of the picture")
	}
}

// checkPicture compares what the seeing model got with what the camera took.
func checkPicture(t *testing.T, cloud *openaitest.Server) {
	t.Helper()
	jpg, err := devicetest.TestPicture()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, r := range cloud.Requests(openaitest.Chat) {
		pictures, err := r.Pictures()
		if err != nil {
			t.Error(err)
		}
		for _, p := range pictures {
			seen++
			if p.Text != "What lies on the desk?" || p.MIME != "image/jpeg" || !bytes.Equal(p.Data, jpg) || !strings.Contains(string(r.Body), `"eyes-1"`) {
				t.Errorf("the seeing model got %q, %s of %d bytes", p.Text, p.MIME, len(p.Data))
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d pictures were looked at, want 2", seen)
	}
}

// visionToken is the token that the device was given.
func visionToken(t *testing.T, d *devicetest.Device) string {
	t.Helper()
	for _, e := range d.Events() {
		var m struct {
			Payload struct {
				Method string
				Params struct {
					Capabilities struct{ Vision devicetest.Vision }
				}
			}
		}
		if e.Kind != devicetest.KindReceived || json.Unmarshal(e.Raw, &m) != nil || m.Payload.Method != "initialize" {
			continue
		}
		v := m.Payload.Params.Capabilities.Vision
		if !strings.HasPrefix(v.URL, "http://127.0.0.1:") || !strings.HasSuffix(v.URL, "/mcp/vision/explain") || len(v.Token) < 20 {
			t.Errorf("initialize gives %+v", v)
		}
		return v.Token
	}
	t.Fatal("no initialize was sent")
	return ""
}

// TestPhotoWithoutEyes: where no model can see, the camera says so in the
// device's language, to a language model as well as to the small brain.
func TestPhotoWithoutEyes(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	seeingModel(cloud, takePhoto, `{"question":"?"}`, "never", "Sorry.")
	s := start(t, setup{env: cloudEnv(cloud)})
	for language, want := range map[string]string{"zh-CN": "没有配置能看图的模型", "en-US": "No model that can see is configured"} {
		d := s.dial(ctx, t, devicetest.Options{Tools: devicetest.NewBoard().Tools(), Language: language})
		s.waitForTools(ctx, t, d)
		ask(ctx, t, d, "please describe my desk")
		if got := toolResult(t, cloud); !strings.Contains(got, `{"success":false,"message":"`+want) {
			t.Errorf("%s: the model was told %s", language, got)
		}
		d.Close()
	}
	plain := start(t, setup{})
	d := plain.dial(ctx, t, devicetest.Options{Tools: devicetest.NewBoard().Tools()})
	plain.waitForTools(ctx, t, d)
	if r := ask(ctx, t, d, "take a photo"); !strings.Contains(r.Text(), "No model that can see") || r.Frames == 0 {
		t.Errorf("the small brain says %q", r.Text())
	}
}

// TestPictureInAResult: a tool that returns a picture itself has it looked at.
func TestPictureInAResult(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	seeingModel(cloud, "self_screen_get_picture", `{}`, "A clock on a dark screen.", "It shows a clock.")
	s := start(t, setup{env: cloudEnv(cloud), config: eyesConfig(cloud)})
	picture := devicetest.Tool{Name: "self.screen.get_picture", Description: "What the screen shows.", Call: func(context.Context, devicetest.Call) (devicetest.Result, error) {
		jpg, err := devicetest.TestPicture()
		return devicetest.Result{JPEG: jpg}, err
	}}
	d := s.dial(ctx, t, devicetest.Options{Tools: []devicetest.Tool{picture}})
	s.waitForTools(ctx, t, d)
	if r := ask(ctx, t, d, "please describe your screen"); r.Text() != "It shows a clock." {
		t.Errorf("answer %q", r.Text())
	}
	if got := toolResult(t, cloud); !strings.HasPrefix(got, "[image/jpeg image, ") || !strings.HasSuffix(got, " bytes]\nA clock on a dark screen.") {
		t.Errorf("the model was told %q", got)
	}
}

// TestFrozenDevice: a control that freezes all of the device for 2 s keeps the
// order of the turn, loses no sound and leaves the device well.
func TestFrozenDevice(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat,
		openaitest.Calls(openaitest.Call{ID: "c1", Name: "self_arm_set_height", Arguments: `{}`}),
		openaitest.Text("All is well."))
	s := start(t, setup{env: cloudEnv(cloud)})
	arm := devicetest.Tool{Name: "self.arm.set_height", Description: "Raise the arm, slowly.", Call: func(ctx context.Context, _ devicetest.Call) (devicetest.Result, error) {
		select {
		case <-time.After(2 * time.Second): // real time: so long the arm takes
		case <-ctx.Done():
		}
		return devicetest.Result{Text: "true"}, nil
	}}
	d := s.dial(ctx, t, devicetest.Options{Tools: []devicetest.Tool{arm}, Quirks: devicetest.Quirks{Freezes: true}})
	s.waitForTools(ctx, t, d)
	r := ask(ctx, t, d, "please raise your arm")
	if !strings.Contains(r.Text(), "OK") || r.Frames == 0 || r.Dropped != 0 {
		t.Errorf("answer %q, %d frames, %d dropped", r.Text(), r.Frames, r.Dropped)
	}
	startsBefore(t, d, "self.arm.set_height")
	if r := ask(ctx, t, d, "and is all well"); r.Text() != "All is well." || r.Dropped != 0 {
		t.Errorf("the next answer %q, %d dropped", r.Text(), r.Dropped)
	}
}
