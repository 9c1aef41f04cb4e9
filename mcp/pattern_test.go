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
