package config

import (
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"xiaozhi/providers/catalog"
	"xiaozhi/providers/service"
)

// servicesDocuments are the document of services and its translation.
var servicesDocuments = []string{"../../docs/services.md", "../../docs/services.zh-CN.md"}

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	codeWord  = regexp.MustCompile("`([^`]+)`")
	keyCell   = regexp.MustCompile("`(\\w+)` ?[(（]`([A-Z_]+)`")
)

// serviceRow is a row of the tables: what it says between its bars.
type serviceRow []string

// words are those of a cell in quotes.
func (r serviceRow) words(cell int) (out []string) {
	for _, m := range codeWord.FindAllStringSubmatch(r[cell], -1) {
		out = append(out, m[1])
	}
	return out
}

// serviceRows reads the rows of a document by the types in their second cell.
func serviceRows(t *testing.T, text string) map[string]serviceRow {
	t.Helper()
	rows := map[string]serviceRow{}
	for line := range strings.SplitSeq(text, "\n") {
		row := serviceRow(strings.Split(strings.ReplaceAll(line, `\|`, "¦"), "|"))
		if len(row) < 9 || !strings.HasPrefix(strings.TrimSpace(row[2]), "`") || strings.TrimSpace(row[2]) == "`type`" {
			continue
		}
		for _, name := range row.words(2) {
			if rows[name] != nil {
				t.Errorf("%s has two rows", name)
			}
			rows[name] = row
		}
	}
	return rows
}

// TestServiceTables: every type of the catalogue has a row in both languages, and what the
// row says of roles, keys, models, regions and addresses is so.
func TestServiceTables(t *testing.T) {
	for _, file := range servicesDocuments {
		rows := serviceRows(t, read(t, file))
		for name := range rows {
			if knownTypes().roles[name] == nil {
				t.Errorf("%s: there is no type %s", file, name)
			}
		}
		for _, k := range catalog.Kinds() {
			row := rows[k.Type]
			if row == nil {
				t.Errorf("%s has no row for %s: add one there and in its translation", file, k.Type)
				continue
			}
			for _, wrong := range wrongRow(row, k) {
				t.Errorf("%s: %s: %s", file, k.Type, wrong)
			}
		}
	}
}

// wrongRow lists what a row says otherwise than the kind. An alias may share the row of the
// kind it stands for.
func wrongRow(row serviceRow, k service.Kind) (wrong []string) {
	var roles []string
	for _, r := range k.Roles() {
		roles = append(roles, string(r))
	}
	slices.Sort(roles)
	if !slices.Equal(slices.Sorted(slices.Values(row.words(3))), roles) {
		wrong = append(wrong, "its roles are "+strings.Join(roles, ", "))
	}
	if k.Free && len(row) == 9 { // at home
		if k.Address != "" && !slices.Contains(row.words(4), k.Address) || k.Address == "" && len(row.words(4)) > 0 {
			wrong = append(wrong, "the address that is taken is "+cmp.Or(k.Address, "none"))
		}
		return wrong
	}
	must, may := cutOptional(row[4])
	for _, e := range k.Env {
		told := []string{string(e.Field), e.Name}
		if needed := slices.Contains(k.Needs, e.Field); needed && !slices.ContainsFunc(must, same(told)) || !needed && !slices.ContainsFunc(may, same(told)) {
			wrong = append(wrong, "its keys do not say "+e.Name+" as they must")
		}
	}
	if len(must)+len(may) != len(k.Env) {
		wrong = append(wrong, "it names more keys than there are")
	}
	if models := k.Models[service.LLM]; k.LLM != nil && k.ASR == nil && len(models) > 0 && !slices.Contains(row.words(5), models[0]) {
		wrong = append(wrong, "the model that is asked is "+models[0])
	}
	for _, r := range row.words(7) {
		if _, ok := k.Regions[r]; !ok {
			wrong = append(wrong, "it has no region "+r)
		}
	}
	for r := range k.Regions {
		if len(k.Regions) < 8 && !slices.Contains(row.words(7), r) {
			wrong = append(wrong, "it does not tell of the region "+r)
		}
	}
	return wrong
}

// cutOptional reads the keys of a cell: those that a section must have, and those after the
// word for optional ones.
func cutOptional(cell string) (must, may [][]string) {
	at := len(cell)
	for _, word := range []string{"; optional", "；可选"} {
		if i := strings.Index(cell, word); i >= 0 {
			at = i
		}
	}
	for _, m := range keyCell.FindAllStringSubmatchIndex(cell, -1) {
		pair := []string{cell[m[2]:m[3]], cell[m[4]:m[5]]}
		if m[0] < at {
			must = append(must, pair)
		} else {
			may = append(may, pair)
		}
	}
	return must, may
}

func same(a []string) func([]string) bool {
	return func(b []string) bool { return slices.Equal(a, b) }
}

// TestServiceExamples: every example of both documents loads without a warning, both have
// the same, and there is one for every type that is not another one's second name.
func TestServiceExamples(t *testing.T) {
	var environ []string
	second := map[string]bool{}
	titles := map[string]bool{}
	for _, k := range catalog.Kinds() {
		for _, e := range k.Env {
			environ = append(environ, e.Name+"=x")
		}
		second[k.Type] = titles[k.Title]
		titles[k.Title] = true
	}
	var examples [][]any
	for _, file := range servicesDocuments {
		var all []any
		types := map[string]bool{}
		for _, m := range yamlBlock.FindAllStringSubmatch(read(t, file), -1) {
			c, warnings, err := Load(Options{File: writeFile(t, "config.yaml", m[1]), Env: environ})
			if err != nil || len(warnings) > 0 {
				t.Errorf("%s: %v %v\n%s", file, err, warnings, m[1])
				continue
			}
			for p := range maps.Values(c.Providers) {
				types[p.Type] = true
			}
			var tree any
			if err := yaml.Unmarshal([]byte(m[1]), &tree); err != nil {
				t.Fatal(err)
			}
			all = append(all, tree)
		}
		for _, k := range catalog.Kinds() {
			if !types[k.Type] && !second[k.Type] {
				t.Errorf("%s has no example of %s", file, k.Type)
			}
		}
		examples = append(examples, all)
	}
	a, _ := yaml.Marshal(examples[0])
	b, _ := yaml.Marshal(examples[1])
	if string(a) != string(b) {
		t.Error("the examples of the two documents differ")
	}
}

// read returns the text of a file.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
