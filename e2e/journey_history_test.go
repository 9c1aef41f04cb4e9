package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/speechtest"
)

var sumNumber = regexp.MustCompile(`(\d+(?:\.\d+)?) (ms|s)\b|(\d+(?:\.\d+)?) ?(毫秒|秒)`)

// TestJourneyHistory (J8): what was said is found by its words, both sides of a spoken turn are played, the parts of its waterfall are
// as long as the whole, and what is deleted and forgotten is nowhere in the data folder.
func TestJourneyHistory(t *testing.T) {
	journey(t, deskByDay, func(t *testing.T, l look) {
		s, owner := onJourney(t)
		ctx := limit(t)
		id := deviceOfLook(8, l)
		beast, bird := "echidna of "+l.lang, "cassowary of "+l.lang
		d := s.speaker(t, devicetest.Options{DeviceID: id}, s.accepted(t))
		ask(ctx, t, d, "tell me of the "+beast)
		says(t, d, clipNamed(t, speechtest.Prompts, heardByBrowser))
		ask(ctx, t, d, "tell me of the "+bird)
		d.Close()

		v := l.visit(t, s, owner, "conversations")
		v.fill("text", "nobody has said this")
		v.pressWhat(`document.querySelector(".search button")`)
		v.reads("conversations/nothing-found")
		v.open("conversations?text=" + strings.ReplaceAll(bird, " ", "+"))
		v.found(beast) // by which the list calls the talk
		v.pressWhat(`document.querySelector(".talk-day a")`)
		v.sees("I heard tell me of the " + beast)
		v.sees("I heard tell me of the " + bird)
		v.Press("Tab", tabKey) // browsers play nothing before somebody has touched the page
		for _, side := range []string{"user", "reply", "both"} {
			played := `(() => {
				const a = document.querySelector("audio[src$='/` + side + `']");
				if (!a.duration) { a.play(); }
				if (a.error) { throw new Error(a.error.message); }
				return a.duration > 0.5 && a.currentTime > 0.2;
			})()`
			v.Await(played)
		}
		for i, sums := range v.List(`[...document.querySelectorAll(".wf-sums")].map((e) => e.textContent)`) {
			if e2e, parts := sumOf(sums); e2e < parts-2 || e2e > parts+2 {
				t.Errorf("turn %d: the parts are %.0f ms, the whole %.0f: %s", i+1, parts, e2e, sums)
			}
		}
		v.wide()
		v.pressWhat(fmt.Sprintf(`[...document.querySelectorAll("article")].find((e) => e.innerText.includes(%q))?.querySelector("button[value=delete-turn]")`, beast))
		v.reads("conversations/did-turn")
		v.Await(fmt.Sprintf(`![...document.querySelectorAll("article")].some((e) => e.innerText.includes(%q))`, beast))
		v.sees(bird)
		v.press("conversations/delete")
		v.press("conversations/delete-now")
		v.reads("conversations/did-delete")
		v.open("devices/" + id)
		v.press("devices/forget")
		v.fill("typed", "not its name")
		v.pressWhat(`document.querySelector("form[action$='/forget'] button")`)
		v.sees(v.words("devices/typed-wrong", id))
		v.fill("typed", id)
		v.pressWhat(`document.querySelector("form[action$='/forget'] button")`)
		v.reads("devices/forgotten")
		v.lacks(id)
		v.done()
		for _, word := range []string{beast, bird, id, "client of " + id} {
			if where := holds(t, filepath.Join(s.dir, "data"), word); where != "" {
				t.Errorf("%q lies in %s", word, where)
			}
		}
	})
}

// sumOf reads the line below a waterfall: the length of its parts together, and of the whole, in ms.
func sumOf(line string) (whole, parts float64) {
	var all []float64
	for _, found := range sumNumber.FindAllStringSubmatch(line, -1) {
		number, unit := found[1]+found[3], found[2]+found[4]
		n, _ := strconv.ParseFloat(number, 64)
		if unit == "s" || unit == "秒" {
			n *= 1000
		}
		all = append(all, n)
	}
	if len(all) < 2 {
		return 0, -1
	}
	for _, n := range all[:len(all)-1] {
		parts += n
	}
	return all[len(all)-1], parts
}
