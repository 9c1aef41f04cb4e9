package mcp

import "testing"

func TestFits(t *testing.T) {
	for _, c := range []struct {
		pattern, source string
		names           []string
		want            bool
	}{
		{"self.door.open", "device", []string{"self.door.open", "self_door_open"}, true},
		{"self_door_open", "device", []string{"self.door.open", "self_door_open"}, true},
		{"SELF.Door.*", "device", []string{"self.door.open"}, true},
		{"self.door.*", "device", []string{"Self.DOOR.Open"}, true},
		{"ΟΔΟΣ", "device", []string{"οδος"}, true},
		{"straße", "device", []string{"STRAßE"}, true},
		{"*", "device", []string{"a/b/c"}, true},
		{"files*", "external:nas", []string{"files/delete/all"}, true},
		{"*/delete", "external:nas", []string{"files/old/delete"}, true},
		{"files/?ld", "external:nas", []string{"files/old"}, true},
		{"external:nas/*", "external:nas", []string{"delete"}, true},
		{"External:NAS/Del*", "external:nas", []string{"delete"}, true},
		{"external:nas/*", "external:nas2", []string{"delete"}, false},
		{"external:*", "external:nas", []string{"delete"}, false}, // it names no source: that ends with "/"
		{"external:*/*", "external:nas", []string{"delete"}, true},
		{"external:nas/*", "device", []string{"external:nas/delete"}, false}, // a name that pretends
		{"device/self.*", "device", []string{"self.door.open"}, true},
		{"device/self.*", "light", []string{"self.door.open"}, false},
		{"local/exit", "local", []string{"exit"}, true},
		{"file/home.*", "file", []string{"home.lamp"}, true},
		{"gateway/device.say", "gateway", []string{"say", "device.say"}, true},
		{"home/lamp", "external:home", []string{"home/lamp"}, true},
		{"self.door", "device", []string{"self.door.open"}, false},
		{"[", "device", []string{"["}, false},
		{"[a-c]x", "device", []string{"Bx"}, true},
		{"", "device", []string{""}, true},
	} {
		pattern, ok := Fits([]string{"other", c.pattern}, c.source, c.names...)
		if ok != c.want || ok && pattern != c.pattern {
			t.Errorf("%q for %q of %s: %q, %v", c.pattern, c.names, c.source, pattern, ok)
		}
	}
}

func FuzzFits(f *testing.F) {
	f.Add("self.*", "device", "self.door")
	f.Add("external:a/[", "external:a", "\xff/\x00")
	f.Fuzz(func(t *testing.T, pattern, source, name string) {
		Fits([]string{pattern}, source, name)
		if _, ok := Fits([]string{"*"}, source, name); !ok {
			t.Errorf("%q is not any name", name)
		}
		if _, ok := Fits([]string{SourceLocal + "/*"}, SourceLocal, name); !ok {
			t.Errorf("%q is none of its source", name)
		}
	})
}

// A tool server that dials in twice cannot choose a source that the settings do not name.
func TestFitsToolOfEntry(t *testing.T) {
	tool := Tool{Name: "Door/Open", Source: "external:lamp-2", Entry: "lamp", Stream: "lamp-2"}
	for pattern, want := range map[string]bool{
		"external:lamp/*": true, "EXTERNAL:Lamp/door*": true, "external:lamp-2/*": true, "external:lam*/door/open": true, "door_open": true, "door*": true,
		"external:lamp-3/*": false, "lamp/*": false, "external:lamp/x*": false, "device/*": false,
	} {
		if got, ok := FitsTool([]string{pattern}, tool, FunctionName(tool.Name)); ok != want || ok && got != pattern {
			t.Errorf("%q: %q, %v", pattern, got, ok)
		}
	}
	if _, ok := FitsTool([]string{"external:/*"}, Tool{Name: "x", Source: "device"}); ok {
		t.Error("a tool of no entry is of the entry without a name")
	}
}

// TestFitsServer: what is passed on is chosen by the server, and by its tools only where the pattern names the server:
// another one could call its tools as it likes.
func TestFitsServer(t *testing.T) {
	maps := Tool{Name: "Find/Way", Source: "external:My.Maps", Stream: "My-Maps"}
	dialled := Tool{Name: "find", Source: "external:lamp-2", Entry: "lamp", Stream: "lamp-2"}
	for _, c := range []struct {
		pattern string
		tool    Tool
		want    bool
	}{
		{"*", maps, true}, {"my.maps", maps, true}, {"MY.*", maps, true}, {"my-maps", maps, true}, {"maps", maps, false},
		{"external:my.maps/*", maps, true}, {"External:*/FIND*", maps, true}, {"external:my.maps/find_way", maps, true}, {"external:my.maps/find/way", maps, true},
		{"external:my.maps/lose*", maps, false}, {"external:other/*", maps, false},
		{"find/way", maps, false}, {"find_way", maps, false}, {"local/*", maps, false}, {"", maps, false},
		{"lamp", dialled, true}, {"lamp-2", dialled, true}, {"external:lamp/find", dialled, true}, {"find", dialled, false},
		{"a/b", Tool{Name: "x", Source: "external:a/b"}, true}, {"a*", Tool{Name: "x", Source: "external:a/b"}, true},
	} {
		if got := FitsServer([]string{"other", "external:other/x", c.pattern}, c.tool); got != c.want {
			t.Errorf("%q for %s of %s: %v", c.pattern, c.tool.Name, c.tool.Source, got)
		}
	}
}
