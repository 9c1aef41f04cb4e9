package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// asvsRow is a row of the table of docs/security.md: which requirements, in words, and what shows it.
var asvsRow = regexp.MustCompile(`^\| ([0-9][0-9., –]*) \| (.+) \| (.+) \|$`)

// TestSecurityTable: each row of the table of ASVS names tests that exist, or says that there is none, and is the same
// in both languages.
func TestSecurityTable(t *testing.T) {
	quoted := regexp.MustCompile("`([^`]+)`")
	var first map[string][]string
	for file, none := range map[string]string{"security.md": "no test", "security.zh-CN.md": "还没有"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", file))
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string][]string{}
		for line := range strings.Lines(string(text)) {
			m := asvsRow.FindStringSubmatch(strings.TrimSpace(line))
			if m == nil {
				continue
			}
			if _, twice := rows[m[1]]; twice {
				t.Errorf("%s: %s is there twice", file, m[1])
			}
			tests := []string{}
			for _, name := range quoted.FindAllStringSubmatch(m[3], -1) {
				tests = append(tests, name[1])
				if why := missing(root, name[1]); why != "" {
					t.Errorf("%s, %s: %s: %s", file, m[1], name[1], why)
				}
			}
			if len(tests) == 0 && m[3] != none {
				t.Errorf("%s, %s: neither a test nor a word that there is none", file, m[1])
			}
			rows[m[1]] = tests
		}
		if len(rows) < 30 {
			t.Errorf("%s: %d rows", file, len(rows))
		}
		for n, tests := range first {
			if !slices.Equal(tests, rows[n]) {
				t.Errorf("row %s is not the same in both languages: %q, %q", n, tests, rows[n])
			}
		}
		if first != nil && len(first) != len(rows) {
			t.Errorf("%d rows in one language, %d in the other", len(first), len(rows))
		}
		first = rows
	}
}
