package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"xiaozhi/internal/app"
	"xiaozhi/internal/config"
	"xiaozhi/internal/contact"
	"xiaozhi/internal/doctor"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/version"
)

const doctorUsage = `usage: xiaozhi doctor [DEVICE] [flags]

%s
%s

`

// doctorTime is how long a server may look at itself.
const doctorTime = 20 * time.Second

// visit is one run of the subcommand.
type visit struct {
	config, data, server, bundle, device string

	json   bool
	client toolsClient
	out    io.Writer
}

// doctorMain is the subcommand. It returns 0 if there is no problem, 1 if there is one, and 2 when it was misused.
func doctorMain(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	v := visit{out: stdout}
	flags := flag.NewFlagSet("xiaozhi doctor", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), doctorUsage, message.In(text.English, "doctor/usage"), message.In(text.Chinese, "doctor/usage"))
		flags.PrintDefaults()
	}
	flags.StringVar(&v.config, "config", "", message.Both("command/flag-config"))
	flags.StringVar(&v.data, "data", "data", message.Both("command/flag-data"))
	flags.StringVar(&v.server, "server", "", message.Both("services/flag-server"))
	flags.StringVar(&v.bundle, "bundle", "", message.Both("doctor/flag-bundle"))
	flags.BoolVar(&v.json, "json", false, message.Both("tool/flag-json"))
	words, err := namesAndFlags(flags, args)
	if err != nil {
		return exit(err)
	}
	if len(words) > 1 || v.bundle != "" && len(words) > 0 {
		flags.Usage()
		return 2
	}
	v.device = strings.Join(words, "")
	worst, err := v.run(ctx, flags)
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi doctor: %v\n", err)
		return 1
	}
	if worst == doctor.Problem {
		return 1
	}
	return 0
}

// run asks the server, or looks at the settings where none runs.
func (v *visit) run(ctx context.Context, flags *flag.FlagSet) (doctor.Level, error) {
	cfg, _, bad := app.LoadSettings(ctx, config.Options{File: v.config, DataDir: v.data, Env: os.Environ()})
	if bad != nil {
		cfg = config.Default()
	}
	v.client = servicesFlags{server: v.server, data: v.data, json: v.json}.client(flags, cfg, v.out)
	v.client.timeout = doctorTime
	if err := v.client.findToken(); err != nil {
		return doctor.Problem, err
	}
	var worst doctor.Level
	var err error
	switch {
	case v.device != "":
		worst, err = v.one(ctx)
	case v.bundle != "":
		worst, err = v.save(ctx)
	default:
		worst, err = v.all(ctx)
	}
	if v.server != "" || v.device != "" || !errors.Is(err, syscall.ECONNREFUSED) {
		return worst, err
	}
	return v.settings(ctx, cfg, bad)
}

// all shows what the server has found.
func (v *visit) all(ctx context.Context) (doctor.Level, error) {
	var a doctor.Answer
	if err := v.client.ask(ctx, http.MethodPost, doctor.Path, nil, &a); err != nil || v.json {
		return cmp.Or(a.Worst, doctor.Problem), err
	}
	fmt.Fprintln(v.out, message.Both("doctor/running", v.client.server))
	v.findings(a.Report)
	if len(a.Devices) > 0 {
		fmt.Fprintf(v.out, "\n%s\n", message.Both("doctor/devices"))
	}
	for _, c := range a.Devices {
		fmt.Fprintf(v.out, "  %s\n", plainText(v.line(c)))
	}
	return a.Worst, nil
}

// line is a device in a list.
func (v *visit) line(c contact.Contact) string {
	open := message.Both("doctor/all-steps")
	for _, m := range c.Steps {
		if m.Step == c.Open {
			open = both(contact.Say("doctor/open-step", m.Title))
		}
	}
	return strings.Join([]string{c.Device, cmp.Or(c.From, "-"), clock(c.Last), open}, "  ")
}

// both is a sentence in both languages.
func both(w contact.Why) string {
	en, zh := w.In(text.English), w.In(text.Chinese)
	if en == zh {
		return en
	}
	return en + " / " + zh
}

// findings shows what was found, by area.
func (v *visit) findings(r doctor.Report) {
	area := doctor.Area("")
	for _, f := range r.Findings {
		if f.Area != area {
			area = f.Area
			fmt.Fprintf(v.out, "\n%s\n", both(area.Title()))
		}
		fmt.Fprintf(v.out, "  %s %s\n", sign(f.Level), plainText(both(f.What)))
		if f.Do.ID != "" {
			fmt.Fprintf(v.out, "      -> %s\n", plainText(both(f.Do)))
		}
	}
	count := func(l doctor.Level) (n int) {
		for _, f := range r.Findings {
			if f.Level == l {
				n++
			}
		}
		return n
	}
	fmt.Fprintf(v.out, "\n%s\n", message.Both("doctor/sum", count(doctor.Problem), count(doctor.Warning)))
}

// sign is a level at the beginning of a line.
func sign(l doctor.Level) string {
	return map[doctor.Level]string{doctor.OK: "[ok]", doctor.Warning: "[!] ", doctor.Problem: "[X] "}[l]
}

// one shows how far a device has come.
func (v *visit) one(ctx context.Context) (doctor.Level, error) {
	var s doctor.Seen
	path := doctor.Path + "/devices/" + url.PathEscape(v.device)
	if err := v.client.ask(ctx, http.MethodGet, path, nil, &s); err != nil {
		return doctor.Problem, err
	}
	worst := doctor.OK
	for _, m := range s.Steps {
		if m.State == contact.Failed {
			worst = doctor.Problem
		}
	}
	if v.json {
		return worst, nil
	}
	if !s.Called {
		fmt.Fprintln(v.out, message.Both("doctor/never", plainText(v.device)))
		worst = doctor.Problem
	} else {
		fmt.Fprintln(v.out, plainText(strings.Join(slices.DeleteFunc([]string{s.Device, s.From, s.Board, s.Firmware}, func(s string) bool { return s == "" }), "  ")))
	}
	for i, m := range s.Steps {
		mark := map[contact.State]string{contact.Missing: "[ ]", contact.Reached: "[x]", contact.Failed: "[X]", contact.Unneeded: "[-]"}[m.State]
		at := ""
		if !m.At.IsZero() {
			at = "  " + clock(m.At)
			if m.From != "" && m.From != s.From {
				at += "  " + plainText(m.From)
			}
		}
		fmt.Fprintf(v.out, "%2d %s %s%s\n", i+1, mark, both(m.Title), at)
		if m.Note.ID != "" {
			fmt.Fprintf(v.out, "       %s\n", plainText(both(m.Note)))
		}
		if m.Step == s.Open {
			for _, cause := range s.Causes {
				if cause.ID != m.Note.ID {
					fmt.Fprintf(v.out, "       -> %s\n", plainText(both(cause)))
				}
			}
		}
	}
	if len(s.Also) > 0 {
		fmt.Fprintln(v.out, message.Both("doctor/also", plainText(strings.Join(s.Also, ", "))))
	}
	v.callers(s.Callers)
	return worst, nil
}

// callers lists who has asked last where to connect.
func (v *visit) callers(all []contact.Called) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(v.out, message.Both("doctor/callers"))
	for _, c := range all {
		fmt.Fprintf(v.out, "  %s\n", plainText(strings.Join([]string{clock(c.At), c.From, cmp.Or(c.Device, "-"), c.Board}, "  ")))
	}
}

// save writes the bundle for support into a file.
func (v *visit) save(ctx context.Context) (doctor.Level, error) {
	body, err := v.client.file(ctx, doctor.BundlePath)
	if err != nil {
		return doctor.Problem, err
	}
	return doctor.OK, v.write(body)
}

func (v *visit) write(body []byte) error {
	file, err := os.OpenFile(v.bundle, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	if err = errors.Join(err, file.Close()); err == nil && !v.json {
		fmt.Fprintln(v.out, message.Both("doctor/saved", v.bundle))
	}
	return err
}

// settings looks at what can be seen while no server runs.
func (v *visit) settings(ctx context.Context, cfg *config.Config, bad error) (doctor.Level, error) {
	found := append([]doctor.Finding{doctor.Settings(bad)}, doctor.CheckDisk(v.data, "")...)
	r := doctor.ReportOf(time.Now(), append(found, doctor.CheckProgram(version.Number())...))
	if bad == nil {
		if kept, err := app.OpenSettings(ctx, cfg, v.data, false); err == nil { // else it looks at what files say
			cfg = kept.Current()
			_ = kept.Close() // nothing was written
		}
		r = app.CheckSettings(ctx, cfg, v.data)
	}
	switch {
	case v.bundle != "":
		var file bytes.Buffer
		b := doctor.Bundle{Version: version.Number(), Settings: cfg.Redacted(), Report: r, Secrets: cfg.Secrets(), Now: time.Now()}
		if err := b.Write(&file); err != nil {
			return doctor.Problem, err
		}
		return r.Worst, v.write(file.Bytes())
	case v.json:
		return r.Worst, json.NewEncoder(v.out).Encode(struct {
			Running bool `json:"running"`
			doctor.Report
		}{false, r})
	}
	fmt.Fprintln(v.out, message.Both("doctor/not-running", v.client.server))
	v.findings(r)
	return r.Worst, nil
}
