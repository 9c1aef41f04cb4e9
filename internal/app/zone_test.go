package app

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/contact"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/settings"
	"xiaozhi/mcp"
	"xiaozhi/store"
)

const zonedMAC = "24:6f:28:aa:30:01"

// daily asks for a reminder.
const daily = `{"time":"every day at 7 am","text":"get up"}`

// zoned is a running program whose model asks for the time at each question.
type zoned struct {
	*running
	ctx    context.Context
	device *devicetest.Device
	by     account.Person
}

func runsInZone(t *testing.T, zone string) *zoned {
	t.Helper()
	z := &zoned{running: runs(t, beforeChange+"server: {timezone: "+zone+"}\n"), by: account.Person{Name: "anna", Role: store.Owner}}
	z.cloud.Handle(openaitest.Chat, func(r *openaitest.Request) openaitest.Reply {
		all := r.JSON()["messages"].([]any)
		if all[len(all)-1].(map[string]any)["role"] == "tool" {
			return openaitest.Text("Yes.")
		}
		return openaitest.Calls(openaitest.Call{ID: "t", Name: "get_current_time", Arguments: "{}"})
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	z.ctx, z.device = ctx, z.dial(ctx, devicetest.Options{OpenListen: true, DeviceID: zonedMAC, Tools: devicetest.NewBoard().Tools()})
	return z
}

// call runs a tool of the device as programs do.
func (z *zoned) call(c mcp.Call) string {
	z.t.Helper()
	r, reason := z.app.outside.Call(z.ctx, zonedMAC, c)
	if reason != "" {
		z.t.Error(reason)
	}
	return mcp.ResultText(r)
}

// choose puts another zone in force as the page of the settings does.
func (z *zoned) choose(zone string) error {
	z.t.Helper()
	plan, err := z.app.settings.Plan(z.ctx, z.by, z.app.settings.Revision(), []settings.Edit{{Path: []string{"server", "timezone"}, Value: zone}})
	if err == nil {
		_, err = z.app.settings.Apply(z.ctx, z.by, plan.ID)
	}
	return err
}

// tells reports whether a text has the hour that it is in a zone.
func tells(text, zone string) bool {
	at, err := time.LoadLocation(zone)
	now := time.Now().In(at)
	return err == nil && (strings.Contains(text, now.Format("2006-01-02 15:")) || strings.Contains(text, now.Add(-time.Minute).Format("2006-01-02 15:")))
}

// answer is what the tool told the model in the next turn.
func (z *zoned) answer(question string) string {
	z.t.Helper()
	z.says(z.ctx, z.device, question)
	all := z.cloud.Requests(openaitest.Chat)
	messages := all[len(all)-1].JSON()["messages"].([]any)
	return messages[len(messages)-1].(map[string]any)["content"].(string)
}

// TestTimeZoneFromTheNextTurn: another zone counts from the next turn on, on the same connection: for the time tool,
// reminders that are set from then on, programs, the doctor and the clocks of devices. Reminders of before keep their moment.
func TestTimeZoneFromTheNextTurn(t *testing.T) {
	t.Parallel()
	const before, after = "Asia/Shanghai", "America/Los_Angeles"
	z := runsInZone(t, before)
	if got := z.answer("tell me a story about now"); !tells(got, before) || tells(got, after) {
		t.Fatalf("in %s it is %s", before, got)
	}
	z.call(mcp.Call{Name: "set_reminder", Arguments: daily, Language: "en"})
	for _, wrong := range []string{"Mars/Olympus", "Local", "../../etc/passwd"} {
		if invalid, ok := errors.AsType[*settings.InvalidError](z.choose(wrong)); !ok || len(invalid.Problems) != 1 || strings.Join(invalid.Problems[0].Path, ".") != "server.timezone" {
			t.Errorf("%s is refused so: %v", wrong, invalid)
		}
	}
	if got := z.app.forces.zone.Location().String(); got != before {
		t.Fatalf("after refusals it is the time of %s", got)
	}
	if err := z.choose(after); err != nil {
		t.Fatal(err)
	}
	if got := z.answer("and another story about now"); !tells(got, after) || tells(got, before) {
		t.Errorf("in %s it is %s", after, got)
	}
	z.call(mcp.Call{Name: "set_reminder", Arguments: daily, Language: "en"})
	z.reminders(map[string]string{before: "07:00", after: "07:00"})
	if got := z.call(mcp.Call{Name: "get_current_time", Language: "en"}); !tells(got, after) {
		t.Errorf("programs are told %s", got)
	}
	z.app.seen.devices.Log.Lists(contact.List{Device: zonedMAC, Err: "silent", Again: time.Second})
	for _, step := range z.app.seen.devices.Log.Of(zonedMAC)[0].Steps {
		if at := step.At.Location().String(); step.Step == contact.Tools.String() && at != after {
			t.Errorf("the doctor tells the time of %s", at)
		}
	}
	if got := zoneOf(z.app, zonedMAC).String(); got != after {
		t.Errorf("the clocks of devices show the time of %s", got)
	}

	if _, err := z.app.settings.Undo(z.ctx, z.by, z.app.settings.Revision()); err != nil {
		t.Fatal(err)
	}
	if got := z.app.forces.now.Load().options.Zone.String(); got != before {
		t.Errorf("taken back, turns have the time of %s", got)
	}
	if err := z.choose(""); err != nil || z.app.forces.zone.Location().String() == before {
		t.Errorf("the machine's own zone is %v, %v", z.app.forces.zone.Location(), err)
	}
}

// reminders compares at what time of which zone reminders are due.
func (z *zoned) reminders(want map[string]string) {
	z.t.Helper()
	all, err := z.app.stored.Reminders.Find(z.ctx, store.ReminderQuery{})
	got := map[string]string{}
	for _, r := range all {
		if zone, failed := time.LoadLocation(r.Zone); failed == nil {
			got[r.Zone] = r.DueAt.In(zone).Format("15:04")
		}
	}
	have, _ := json.Marshal(got)
	wanted, _ := json.Marshal(want)
	if err != nil || string(have) != string(wanted) {
		z.t.Errorf("reminders %s, %v, want %s", have, err, wanted)
	}
}
