package local

import (
	"strings"
	"testing"
)

// TestGroups: each tool has a group that it is listed under outward, and those
// that work on a conversation or a device say so.
func TestGroups(t *testing.T) {
	s := New(Options{Roles: []string{"pirate"}, Music: NewMusic(t.TempDir())})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var free []string
	for _, tool := range s.GetAvailableTools() {
		if tool.Stream == "" || strings.Contains(tool.Stream, ".") {
			t.Errorf("%s is listed under %q", tool.Name, tool.Stream)
		}
		if !tool.NeedsDevice {
			free = append(free, tool.Stream+"."+tool.Name)
		}
	}
	if got, want := strings.Join(free, " "), "time.get_current_time time.get_day time.get_lunar_calendar util.calculate util.convert_units music.list_music"; got != want {
		t.Errorf("without a device: %s, want %s", got, want)
	}
}
