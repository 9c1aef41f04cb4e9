package memory

import (
	"strings"
	"testing"
)

// TestWhoSaidIt: a fact is of the person whose voice said it, whatever a model takes them for; what one says of themselves does not take the place of
// what another has said.
func TestWhoSaidIt(t *testing.T) {
	answer := `{"facts":[{"text":"The user's dog is called Rex.","who":"Ben","turn":1},{"text":"The user likes tea.","who":"Carl","turn":2}]}`
	inTime(t, []string{answer}, func(r *rig) {
		r.shelf.say("c", kitchen, "my dog Rex is ill", "I like tea")
		r.shelf.said["c"][0].Speaker = "Anna"
		r.over()
		k, _ := r.shelf.Load(r.Context(), kitchen)
		who := map[string]string{}
		for _, f := range k.Facts {
			who[f.Text] = f.Person
		}
		if who["The user's dog is called Rex."] != "Anna" || who["The user likes tea."] != "Carl" || len(who) != 2 {
			t.Errorf("%v", who)
		}
		if asked := r.model.asked[0]; !strings.Contains(asked, "[1] user (Anna): my dog Rex is ill") || !strings.Contains(asked, "[2] user: I like tea") {
			t.Error(asked)
		}
	})
	inTime(t, nil, func(r *rig) {
		r.shelf.say("c", attic, "I live in Ulm.", "I live in Rome.")
		r.shelf.said["c"][0].Speaker, r.shelf.said["c"][1].Speaker = "Anna", "Ben"
		r.over()
		if n := r.notes(attic, ""); !strings.Contains(n.Always, `"Anna: The user lives in Ulm."`) || !strings.Contains(n.Always, `"Ben: The user lives in Rome."`) {
			t.Error(n.Always)
		}
	})
}
