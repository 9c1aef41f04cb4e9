package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"xiaozhi/audio"
	"xiaozhi/internal/app"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/probe"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// servicesFlags are the flags of the subcommand.
type servicesFlags struct {
	config, data, role, language, text, save, sound, server string
	runs                                                    int
	timeout                                                 time.Duration
	json                                                    bool
}

// services is the subcommand that lists services, tries them and their voices.
func services(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var f servicesFlags
	flags := newFlags("services", "services [list] | test NAME [flags] | voices NAME [flags]", "services/usage", stderr)
	flags.StringVar(&f.config, "config", "", message.Both("command/flag-config"))
	flags.StringVar(&f.data, "data", "data", message.Both("command/flag-data"))
	flags.StringVar(&f.server, "server", "", message.Both("services/flag-server"))
	flags.BoolVar(&f.json, "json", false, message.Both("services/flag-json"))
	flags.StringVar(&f.role, "role", "", message.Both("services/flag-role"))
	flags.StringVar(&f.language, "language", "", message.Both("services/flag-language"))
	flags.StringVar(&f.text, "text", "", message.Both("services/flag-text"))
	flags.StringVar(&f.save, "save", "", message.Both("services/flag-save"))
	flags.StringVar(&f.sound, "sound", "", message.Both("services/flag-sound"))
	flags.IntVar(&f.runs, "runs", 1, message.Both("services/flag-runs"))
	flags.DurationVar(&f.timeout, "timeout", time.Minute, message.Both("services/flag-timeout"))
	words, err := namesAndFlags(flags, args)
	if err != nil {
		return exit(err)
	}
	if len(words) == 0 {
		words = []string{"list"}
	}
	acts := map[string]int{"list": 1, "test": 2, "voices": 2}
	switch act := acts[words[0]]; {
	case act == 0:
		fmt.Fprintf(stderr, "xiaozhi services: %s\n", message.Both("services/act", words[0]))
		return 2
	case act > len(words):
		fmt.Fprintf(stderr, "xiaozhi services: %s\n", message.Both("services/needs-name", words[0]))
		return 2
	}
	if acts[words[0]] != len(words) || f.runs < 1 || f.role != "" && !slices.Contains([]string{"asr", "llm", "tts", "realtime", "embed"}, f.role) {
		flags.Usage()
		return 2
	}
	s, cfg, err := openServices(ctx, f)
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi services: %v\n", err)
		return 1
	}
	defer s.Close()
	t := &trier{s: s, f: f, out: stdout, server: f.client(flags, cfg, stdout)}
	if t.f.language == "" && len(words) > 1 {
		t.f.language = t.s.Language(words[1])
	}
	switch words[0] {
	case "test":
		err = t.test(ctx, words[1])
	case "voices":
		err = t.voices(ctx, words[1])
	default:
		err = t.list(ctx)
	}
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi services: %v\n", err)
		return 1
	}
	return 0
}

// openServices reads the settings with what people have set in the console, and opens their sealed secrets.
func openServices(ctx context.Context, f servicesFlags) (*engines.Services, *config.Config, error) {
	cfg, _, err := app.LoadSettings(ctx, config.Options{File: f.config, DataDir: f.data, Env: os.Environ()})
	if err != nil {
		return nil, nil, err
	}
	kept, err := app.OpenSettings(ctx, cfg, f.data, false)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = kept.Close() }() // nothing was written
	cfg = kept.Current()
	return engines.OpenServices(cfg, slog.New(slog.DiscardHandler)), cfg, nil
}

// client asks the server that these settings are for.
func (f servicesFlags) client(flags *flag.FlagSet, cfg *config.Config, out io.Writer) toolsClient {
	c := toolsClient{server: cmp.Or(strings.TrimRight(f.server, "/"), serverOf(cfg)), token: os.Getenv("XIAOZHI_MCP_TOKEN"), data: f.data, asJSON: f.json, timeout: askTime, out: out}
	flags.Visit(func(f *flag.Flag) { c.named = c.named || f.Name == "data" })
	if !strings.Contains(c.server, "://") {
		c.server = "http://" + c.server
	}
	return c
}

// trier runs one subcommand.
type trier struct {
	s      *engines.Services
	f      servicesFlags
	out    io.Writer
	server toolsClient
}

// test tries all roles of a service, or the one that was named.
func (t *trier) test(ctx context.Context, name string) error {
	roles := t.s.Roles(name)
	switch {
	case name == "auto":
		return errors.New(message.Both("services/auto"))
	case len(roles) == 0:
		return t.unknown(name)
	}
	if t.f.role != "" {
		if !slices.Contains(roles, service.Role(t.f.role)) {
			return errors.New(message.Both("services/wrong-role", name, t.f.role, joinRoles(roles)))
		}
		roles = []service.Role{service.Role(t.f.role)}
	}
	slices.SortFunc(roles, func(a, b service.Role) int { return order(a) - order(b) })
	said := t.sentence()
	var sound []int16 // of the service's own voice, for its recogniser
	var all []tested
	worked := true
	for _, r := range roles {
		one := t.s.Try(ctx, name, r)
		result := tested{Role: r, About: one.What}
		if one.Err != nil {
			why := message.Both("services/not-made") + ": " + engines.Why(one.Err, t.s.Free(name))
			t.tell("%s  %s\n", r, why)
			result.Runs = []outcome{{Failure: why}}
		} else {
			t.tell("%s  %s\n", r, one.What)
			t.runs(ctx, name, one, said, &sound, &result)
		}
		worked = worked && !slices.ContainsFunc(result.Runs, func(o outcome) bool { return o.Failure != "" })
		all = append(all, result)
	}
	if t.f.json {
		if err := writeJSON(t.out, struct {
			Service string   `json:"service"`
			Roles   []tested `json:"roles"`
		}{name, all}); err != nil {
			return err
		}
	}
	if !worked {
		return errors.New(message.Both("services/failed"))
	}
	return nil
}

// runs tries a role as often as was asked for.
func (t *trier) runs(ctx context.Context, name string, one engines.Tried, said string, sound *[]int16, result *tested) {
	steps := 0
	for run := range t.f.runs {
		made, err := t.try(ctx, name, one, said, sound)
		for _, o := range made {
			t.tell("  %s\n", o)
		}
		if err != nil {
			why := engines.Why(err, t.s.Free(name))
			t.tell("  %d. %s\n", run+1, why)
			made = []outcome{{Failure: why}} // half a talk would be set against whole ones
		} else {
			steps = len(made)
		}
		result.add(run+1, made)
	}
	of := result.summarise(steps)
	for _, m := range result.Medians {
		t.tell("  %s: %s\n", message.Both("services/medians", of, t.f.runs), m)
	}
}

// tell writes for people, not where a program reads.
func (t *trier) tell(format string, args ...any) {
	if !t.f.json {
		fmt.Fprintf(t.out, format, args...)
	}
}

// unknown says that there is no service of a name, and which one was meant if that is only a slip away.
func (t *trier) unknown(name string) error {
	if meant, slip := t.s.Meant(name); slip {
		return errors.New(message.Both("services/unknown-near", name, meant))
	}
	return errors.New(message.Both("services/unknown", name))
}

// order puts the voice first, for the recogniser hears it.
func order(r service.Role) int {
	return slices.Index([]service.Role{service.TTS, service.ASR, service.LLM, service.Realtime, service.Embed}, r)
}

func joinRoles(roles []service.Role) string {
	var out []string
	for _, r := range roles {
		out = append(out, string(r))
	}
	return strings.Join(out, ", ")
}

// sentence holds the words that are spoken and heard.
func (t *trier) sentence() string {
	if t.f.text != "" {
		return t.f.text
	}
	return message.In(text.Lang(t.f.language), "services/sentence")
}

// try runs one role once.
func (t *trier) try(ctx context.Context, name string, one engines.Tried, said string, sound *[]int16) ([]outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, t.f.timeout)
	defer cancel()
	price := t.s.Price(name)
	switch {
	case one.TTS != nil:
		spoken, err := probe.Speak(ctx, one.TTS, providers.TTSRequest{Text: said, Language: t.f.language})
		if err != nil {
			return nil, err
		}
		*sound = spoken.PCM
		return []outcome{{
			First: inMS(spoken.First), Total: inMS(spoken.Total), Sound: inMS(spoken.Length), Cost: price.Spoken(utf8.RuneCountInString(said)),
			times: func(o outcome) string { return message.Both("services/spoke", ms(o.First), ms(o.Total), ms(o.Sound)) },
		}}, nil
	case one.ASR != nil:
		heard, err := t.hear(ctx, one.ASR, said, sound)
		if err != nil {
			return nil, err
		}
		return []outcome{{
			Heard: heard.Text, First: inMS(heard.Partial), Total: inMS(heard.Final), Wrong: heard.Wrong,
			Cost: price.Hearing(audio.Recognition.Duration(len(*sound))), times: heardTimes,
		}}, nil
	case one.Duplex != nil:
		return t.converse(ctx, one, price, said)
	case one.Embed != nil:
		return t.embed(ctx, one.Embed, price)
	case t.s.IsRules(name):
		return t.command(ctx, one.LLM)
	}
	thought, err := probe.Think(ctx, one.LLM, probe.Thermometer(message.In(text.Lang(t.f.language), "services/question"), t.f.language))
	if err != nil {
		return nil, err
	}
	o := outcome{Text: thought.Text, First: inMS(thought.First), Total: inMS(thought.Total), Tool: toolUse(thought.Called), times: thoughtTimes}
	o.used(thought.Usage, price)
	return []outcome{o}, nil
}

func heardTimes(o outcome) string {
	if o.First == 0 {
		return message.Both("services/heard-whole", ms(o.Total), o.Wrong*100)
	}
	return message.Both("services/heard", ms(o.First), ms(o.Total), o.Wrong*100)
}

func thoughtTimes(o outcome) string {
	return message.Both("services/thought", ms(o.First), ms(o.Total))
}

// command has the commands that need no model answer one of them: they know a few, and no tool of a test.
func (t *trier) command(ctx context.Context, rules providers.LLM) ([]outcome, error) {
	said := message.In(text.Lang(t.f.language), "services/command")
	thought, err := probe.Think(ctx, rules, probe.Question{Text: said, Language: t.f.language})
	if err != nil {
		return nil, err
	}
	return []outcome{{Heard: said, Text: thought.Text, First: inMS(thought.First), Total: inMS(thought.Total), times: thoughtTimes}}, nil
}

// hear lets a recogniser hear a file, the voice of its own service, or the local one.
func (t *trier) hear(ctx context.Context, ears providers.ASR, said string, sound *[]int16) (h probe.Heard, err error) {
	if t.f.sound != "" || len(*sound) == 0 {
		if *sound, err = t.recording(ctx, &said); err != nil {
			return h, err
		}
	}
	return probe.Hear(ctx, ears, *sound, t.f.language, said)
}

// at16k changes the rate of sound to that of recognition.
func at16k(pcm []int16, rate int) ([]int16, error) {
	if rate == audio.Recognition.Rate {
		return pcm, nil
	}
	r, err := audio.NewResampler(rate, audio.Recognition.Rate)
	if err != nil {
		return nil, err
	}
	return r.Flush(r.Write(nil, pcm)), nil
}

// cost shows what something cost, if its price is known.
func cost(money float64) string {
	if money <= 0 {
		return ""
	}
	return "; " + message.Both("services/cost", money)
}
