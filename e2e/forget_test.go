package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// TestForgetLeavesNothing: of a device that is forgotten while it talks, no file of the data folder holds a word that was
// said, its Device-Id or its Client-Id: not the database, its log or a backup. The log has no words at any time.
func TestForgetLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	const heard, said, argument, result, promised = "quokka heard", "numbat said", "bilby argument", "wombat result", "dingo promised"
	cloud.Reply(openaitest.Chat,
		openaitest.Text("The "+said+" is here."),
		openaitest.Calls(openaitest.Call{ID: "c1", Name: "self_diary_write", Arguments: `{"text":"` + argument + `"}`}),
		openaitest.Text("It is written."),
		openaitest.Calls(openaitest.Call{ID: "c2", Name: "set_reminder", Arguments: `{"time":"tomorrow at 7 am","text":"feed the ` + promised + `"}`}),
		openaitest.Text("I have heard you."),
		openaitest.Text(strings.Repeat("The "+said+" goes on and on. ", 20)),
		openaitest.Text("Who are you?"))
	s := start(t, setup{env: cloudEnv(cloud)})
	s.waitReady(ctx, t)
	diary := devicetest.Tool{
		Name: "self.diary.write", Description: "writes into a diary", Properties: []devicetest.Property{{Name: "text", Type: "string"}},
		Call: func(context.Context, devicetest.Call) (devicetest.Result, error) {
			return devicetest.Result{Text: result}, nil
		},
	}
	o := devicetest.Options{DeviceID: "24:6f:28:77:12:9c", ClientID: "3f1b4a3e-7712-4a66-9a5e-0c2b8a6f1d33", Tools: []devicetest.Tool{diary}}
	d := s.dial(ctx, t, o)
	s.waitForTools(ctx, t, d)
	ask(ctx, t, d, "please note what the "+heard)
	ask(ctx, t, d, "please write it into the diary")
	if r := ask(ctx, t, d, "please do not let me forget the "+promised); !strings.Contains(r.Text(), "7:00") {
		t.Errorf("the reminder: %q", r.Text())
	}
	hall := s.dial(ctx, t, devicetest.Options{DeviceID: newDeviceID()})
	ask(ctx, t, hall, "please keep the platypus in mind")
	time.Sleep(time.Second) // what is handed over is written within a quarter of that
	data := filepath.Join(s.dir, "data")
	if out, err := exec.CommandContext(ctx, binary, "backup", "--data", data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, word := range []string{heard, said, argument, result, promised, o.DeviceID, "platypus"} {
		if holds(t, data, word) == "" {
			t.Errorf("%q was not kept at all", word)
		}
	}
	if err := d.Detect("please tell me all of it"); err != nil { // it is forgotten while it answers
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	s.forget(ctx, t, o.DeviceID)
	<-d.Done()
	gone := func(when string) {
		t.Helper()
		for _, word := range []string{heard, said, argument, result, promised, o.DeviceID, o.ClientID} {
			if where := holds(t, data, word); where != "" {
				t.Errorf("%s %q lies in %s", when, word, where)
			}
		}
	}
	time.Sleep(time.Second)
	gone("while the server runs,")
	if backups, _ := filepath.Glob(filepath.Join(data, "backups", "*")); len(backups) != 1 {
		t.Errorf("backups: %q", backups)
	}
	if holds(t, data, "platypus") == "" {
		t.Error("of the other device something was lost")
	}
	again := s.dial(ctx, t, o)
	ask(ctx, t, again, "please say who I am")
	requests := cloud.Requests(openaitest.Chat)
	if body := string(requests[len(requests)-1].Body); strings.Contains(body, heard) || strings.Contains(body, said) {
		t.Errorf("the model is told of it: %s", body)
	}
	s.forget(ctx, t, o.DeviceID)
	<-again.Done()
	s.stop(t)
	gone("at the end")
	for _, word := range []string{heard, said, argument, result, promised, o.ClientID, "platypus"} {
		if strings.Contains(s.log.String(), word) {
			t.Errorf("%q is in the log", word)
		}
	}
}

// forget has a device forgotten by the command.
func (s *server) forget(ctx context.Context, t *testing.T, id string) {
	t.Helper()
	address := strings.TrimSuffix(s.ota, "/xiaozhi/ota/")
	out, err := exec.CommandContext(ctx, binary, "devices", "--json", "--server", address, "--data", filepath.Join(s.dir, "data"), "forget", id).Output()
	var done struct{ Left []string }
	if err == nil && len(out) > 0 {
		err = json.Unmarshal(out, &done)
	}
	if err != nil || len(done.Left) > 0 {
		t.Errorf("forget: %v: %s", err, out)
	}
}
