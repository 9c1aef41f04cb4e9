package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestUsage checks that requested help goes to stdout with code 0, and misuse to
// stderr with code 2.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args   []string
		code   int
		stdout bool
		want   []string
	}{
		{nil, 0, true, []string{"talk", "bench", "测量服务器"}},
		{[]string{"help"}, 0, true, []string{"talk"}},
		{[]string{"talk", "--help"}, 0, true, []string{"-server", "模拟一台设备"}},
		{[]string{"bench", "--help"}, 0, true, []string{"-scenario", "用模拟设备"}},
		{[]string{"serve"}, 2, false, []string{`unknown command "serve"`, `没有 "serve" 这个命令`}},
		{[]string{"talk", "--nope"}, 2, false, []string{"nope", "查看参数"}},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), c.args, strings.NewReader(""), &out, &errs)
		said, silent := out.String(), errs.String()
		if !c.stdout {
			said, silent = silent, said
		}
		if code != c.code || silent != "" {
			t.Errorf("%q: exit %d, and on the other output %q", c.args, code, silent)
		}
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%q does not say %q:\n%s", c.args, want, said)
			}
		}
	}
}

// FuzzTalkFlags checks that no command line of talk crashes, and that a refusal has a reason.
func FuzzTalkFlags(f *testing.F) {
	for _, seed := range []string{"--text\x00hi", "--server\x00ws://", "--frame\x0060", "--timeout\x00-1s", "--protocol\x00", "--\x00x", "-", "--mode=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var out bytes.Buffer
		if _, err := parseTalk(strings.Split(line, "\x00"), &out); err != nil && err.Error() == "" {
			t.Error("no reason")
		}
	})
}
