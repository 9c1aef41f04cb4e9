package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	testName = regexp.MustCompile(`^([a-z0-9/]+)\.(Test[A-Z]\w*)$`)
	scene    = regexp.MustCompile(`^[a-z0-9_]+\.txtar$`)
	metric   = regexp.MustCompile(`^M([1-9]|1[0-7])$`)
)

// behaviour is a row of the tables in docs/behaviours.md and its translation.
type behaviour struct {
	shownBy, bench []string // names of tests and scenes, and of metrics
	untested       bool
}

// readBehaviours reads the rows of all tables, and names those that are no rows.
func readBehaviours(text, noTest string) (rows map[int]behaviour, wrong []string) {
	rows = map[int]behaviour{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), "|")
		n, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		if !strings.HasPrefix(line, "|") || err != nil {
			continue
		}
		if _, twice := rows[n]; twice || len(cells) != 4 {
			wrong = append(wrong, line)
			continue
		}
		rows[n] = behaviour{
			shownBy: inQuotes(cells[2]), untested: strings.Contains(cells[2], noTest),
			bench: strings.FieldsFunc(cells[3], func(r rune) bool { return strings.ContainsRune(" ,、", r) }),
		}
	}
	return rows, wrong
}

// inQuotes lists what stands in backquotes.
func inQuotes(cell string) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// missing says what is wrong with the name of a test or a scene under a root, or "".
func missing(root, name string) string {
	if scene.MatchString(name) {
		if _, err := os.Stat(filepath.Join(root, "agent", "testdata", "talk", name)); err != nil {
			return err.Error()
		}
		return ""
	}
	m := testName.FindStringSubmatch(name)
	if m == nil {
		return "neither a scene nor a test of a package"
	}
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(m[1]), "*_test.go"))
	if err != nil {
		return err.Error()
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return err.Error()
		}
		if strings.Contains(string(src), "\nfunc "+m[2]+"(t *testing.T)") {
			return ""
		}
	}
	return "no test file of the package has it"
}

// TestBehaviours: the tables of what the server does are whole, name tests,
// scenes and metrics that exist, and are the same in both languages.
func TestBehaviours(t *testing.T) {
	var first map[int]behaviour
	for file, noTest := range map[string]string{"behaviours.md": "no test", "behaviours.zh-CN.md": "还没有"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", file))
		if err != nil {
			t.Fatal(err)
		}
		rows, wrong := readBehaviours(string(text), noTest)
		if len(rows) < 52 || len(wrong) > 0 {
			t.Errorf("%s: %d rows; not understood, or twice: %q", file, len(rows), wrong)
		}
		for n := 1; n <= len(rows); n++ {
			checkBehaviour(t, root, file, n, rows[n])
			if other, ok := first[n]; ok && (!slices.Equal(other.shownBy, rows[n].shownBy) || !slices.Equal(other.bench, rows[n].bench) || other.untested != rows[n].untested) {
				t.Errorf("row %d is not the same in both languages: %+v, %+v", n, other, rows[n])
			}
		}
		first = rows
	}
}

func checkBehaviour(t *testing.T, root, file string, n int, b behaviour) {
	t.Helper()
	tests := 0
	for _, name := range b.shownBy {
		if strings.HasPrefix(name, "xiaozhi ") {
			continue // a command
		}
		tests++
		if why := missing(root, name); why != "" {
			t.Errorf("%s, row %d: %s: %s", file, n, name, why)
		}
	}
	if tests == 0 && !b.untested {
		t.Errorf("%s, row %d: neither a test nor a word that there is none", file, n)
	}
	for _, m := range b.bench {
		if !metric.MatchString(m) {
			t.Errorf("%s, row %d: %q is no metric", file, n, m)
		}
	}
}

// TestMissing holds the check itself: a name without a test or a scene is found.
func TestMissing(t *testing.T) {
	for name, there := range map[string]bool{
		"internal/archtest.TestMissing": true,
		"auto.txtar":                    true,
		"internal/archtest.TestGone":    false,
		"internal/archtest.TestMiss":    false,
		"internal/gone.TestMissing":     false,
		"nobody.txtar":                  false,
		"TestMissing":                   false,
	} {
		if why := missing(root, name); (why == "") != there {
			t.Errorf("%s: %q, there: %v", name, why, there)
		}
	}
	rows, wrong := readBehaviours("| 1 | a | `x.txtar`; no test | M1, M2 |\n| 1 | b | c | |\n| 2 | b |\n| # | b | c | d |\n", "no test")
	if len(rows) != 1 || len(wrong) != 2 || !rows[1].untested || !slices.Equal(rows[1].shownBy, []string{"x.txtar"}) || !slices.Equal(rows[1].bench, []string{"M1", "M2"}) {
		t.Errorf("%+v, %q", rows, wrong)
	}
}
