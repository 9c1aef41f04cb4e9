package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// attackRow is a row of the tables of attacks: the attack, what happens, and the tests that show it.
var attackRow = regexp.MustCompile(`^\| (.+) \| (.+) \| (.*Test.*) \|$`)

// TestSecurityAttacks: each row of the tables of attacks names tests that exist, of e2e where no package is named, and
// the rows are the same, in the same order, in both languages.
func TestSecurityAttacks(t *testing.T) {
	quoted := regexp.MustCompile("`([^`]+)`")
	var first [][]string
	for file, title := range map[string]string{"security.md": "## Attacks and what shows their end", "security.zh-CN.md": "## 攻击与验证"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", file))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, there := strings.Cut(string(text), "\n"+title+"\n")
		table, _, _ := strings.Cut(rest, "\n## ")
		rows, seen := [][]string{}, map[string]bool{}
		for line := range strings.Lines(table) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") || strings.HasPrefix(line, "| attack |") || strings.HasPrefix(line, "| 攻击 |") {
				continue
			}
			m := attackRow.FindStringSubmatch(line)
			if m == nil || seen[m[1]] {
				t.Errorf("%s: no row of an attack, a consequence and its tests, or twice: %s", file, line)
				continue
			}
			seen[m[1]] = true
			tests := []string{}
			for _, name := range quoted.FindAllStringSubmatch(m[3], -1) {
				if !strings.Contains(name[1], ".") {
					name[1] = "e2e." + name[1]
				}
				tests = append(tests, name[1])
				if why := missing(root, name[1]); why != "" {
					t.Errorf("%s, %s: %s: %s", file, m[1], name[1], why)
				}
			}
			if len(tests) == 0 {
				t.Errorf("%s, %s: no test", file, m[1])
			}
			rows = append(rows, tests)
		}
		if !there || len(rows) < 30 {
			t.Errorf("%s: %d rows of attacks under %q", file, len(rows), title)
		}
		if first != nil && !slices.EqualFunc(first, rows, slices.Equal[[]string]) {
			t.Errorf("the attacks are not the same in both languages: %q, %q", first, rows)
		}
		first = rows
	}
}

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
