package config

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sectionKeys lists the keys of the two upper levels, such as server.listen; what
// is no section stands alone.
func sectionKeys(t reflect.Type) []string {
	var keys []string
	for _, f := range keyFields(t) {
		section := f.Tag.Get("koanf")
		if f.Type.Kind() != reflect.Struct {
			keys = append(keys, section)
			continue
		}
		for _, g := range keyFields(f.Type) {
			keys = append(keys, section+"."+g.Tag.Get("koanf"))
		}
	}
	return keys
}

func TestConfigurationDocuments(t *testing.T) {
	row := regexp.MustCompile(`(?m)^\| (.*?) \|`)
	quoted := regexp.MustCompile("`([a-z_]+(?:\\.[\\w.]+)?)")
	keys := sectionKeys(configType())
	for _, file := range []string{"../../docs/configuration.md", "../../docs/configuration.zh-CN.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, m := range row.FindAllStringSubmatch(string(text), -1) {
			for _, q := range quoted.FindAllStringSubmatch(m[1], -1) {
				parts := strings.Split(q[1], ".")
				told = append(told, parts[0], strings.Join(parts[:min(2, len(parts))], "."))
			}
		}
		for _, key := range keys {
			if !slices.Contains(told, key) && !strings.HasSuffix(key, "_file") {
				t.Errorf("%s does not tell of %s", file, key)
			}
		}
	}
}
