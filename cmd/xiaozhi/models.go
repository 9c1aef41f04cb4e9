package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"xiaozhi/internal/models"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sherpa"
	"xiaozhi/providers/sherpa/modelfile"
)

// modelsCommand is the subcommand of the models on the disk, at work.
type modelsCommand struct {
	store   *models.Store
	entries []models.Entry
	stdout  io.Writer
	stderr  io.Writer
}

// modelsMain is the subcommand that fetches models of speech and looks after them.
func modelsMain(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	action := ""
	if len(args) > 0 {
		action, args = args[0], args[1:]
	}
	flags := newFlags("models", "models list | get NAME... | check [NAME...] | rm NAME... [flags]", "models/usage", stderr)
	if action == "try" {
		return tryModel(ctx, flags, args, stderr)
	}
	data := flags.String("data", "data", message.Both("command/flag-data"))
	mirror := flags.String("mirror", "", message.Both("models/flag-mirror"))
	names, err := namesAndFlags(flags, args)
	if err != nil {
		return exit(err)
	}
	known, err := models.Load(filepath.Join(*data, "models.yaml"))
	c := &modelsCommand{
		store:   &models.Store{Dir: filepath.Join(*data, "models"), Mirror: cmp.Or(*mirror, known.Mirror), Inspect: inspectModel},
		entries: known.Models, stdout: stdout, stderr: stderr,
	}
	if err = errors.Join(err, models.CheckMirror(*mirror)); err != nil {
		return c.failed(err)
	}
	switch {
	case action == "list" && len(names) == 0:
		return c.list()
	case action == "get" && len(names) > 0:
		return c.each(names, func(name string) error { return c.get(ctx, name) })
	case action == "check":
		if len(names) == 0 {
			if names, err = c.store.Names(); err != nil {
				return c.failed(err)
			}
			if len(names) == 0 {
				fmt.Fprintln(stdout, message.Both("models/none"))
			}
		}
		return c.each(names, func(name string) error { return c.check(ctx, name) })
	case action == "rm" && len(names) > 0:
		return c.each(names, c.remove)
	}
	flags.Usage()
	return 2
}

// namesAndFlags parses names and flags in any order.
func namesAndFlags(flags *flag.FlagSet, args []string) (names []string, err error) {
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if args = flags.Args(); len(args) > 0 {
			names, args = append(names, args[0]), args[1:]
		}
	}
	return names, nil
}

// each does the same with all names, goes on after a failure, and returns the exit code.
func (c *modelsCommand) each(names []string, do func(name string) error) int {
	code := 0
	for _, name := range names {
		if err := do(name); err != nil {
			if !strings.HasPrefix(err.Error(), name+": ") {
				err = fmt.Errorf("%s: %w", name, err)
			}
			code = c.failed(err)
			if errors.Is(err, context.Canceled) {
				return code
			}
		}
	}
	return code
}

func (c *modelsCommand) failed(err error) int {
	fmt.Fprintf(c.stderr, "xiaozhi models: %s\n", explainModel(err))
	return 1
}

// explainModel says in both languages what a person can do something about.
func explainModel(err error) string {
	if p, ok := errors.AsType[*modelfile.Problem](err); ok {
		return p.Both()
	}
	for sentinel, id := range map[error]string{
		models.ErrUnknown: "models/unknown", models.ErrBusy: "models/busy", models.ErrAbsent: "models/absent", models.ErrName: "models/name",
		models.ErrChanged: "models/changed", os.ErrExist: "models/own",
	} {
		if errors.Is(err, sentinel) {
			return err.Error() + ": " + message.Both(id)
		}
	}
	return err.Error()
}

// list prints what is known and what is there.
func (c *modelsCommand) list() int {
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	listed := make(map[string]bool)
	for _, e := range c.entries {
		listed[e.Name] = true
		kind := e.Kind
		if !e.Verified() {
			kind += " *"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Name, e.Role, kind, cmp.Or(strings.Join(e.Languages, " "), "-"), megabytes(e.Size()),
			strings.ReplaceAll(e.Licence, "?", message.Both("models/licence-unknown")), c.state(e.Name))
	}
	names, err := c.store.Names()
	for _, name := range names {
		if !listed[name] {
			fmt.Fprintf(w, "%s\t\t\t\t\t\t%s\n", name, c.state(name))
		}
	}
	err = errors.Join(err, w.Flush())
	fmt.Fprintln(c.stdout, message.Both("models/listed"))
	if err != nil {
		return c.failed(err)
	}
	return 0
}

// state says in both languages what there is of a model.
func (c *modelsCommand) state(name string) string {
	switch c.store.State(name) {
	case models.Present:
		return message.Both("models/present")
	case models.Partly:
		return message.Both("models/partly")
	case models.OwnFiles:
		return message.Both("models/own-files")
	case models.Absent:
	}
	return "-"
}

// get fetches a model, or what an address names.
func (c *modelsCommand) get(ctx context.Context, name string) error {
	e, err := models.Find(c.entries, name)
	if err != nil {
		return err
	}
	if !e.Verified() {
		fmt.Fprintln(c.stderr, message.Both("models/unverified", e.Name))
	}
	bar := &progressBar{out: c.stderr}
	if f, ok := c.stderr.(*os.File); ok {
		bar.live = term.IsTerminal(int(f.Fd()))
	}
	c.store.Tell = bar.tell
	r, err := c.store.Get(ctx, e)
	bar.end()
	if err != nil {
		return err
	}
	fmt.Fprintln(c.stdout, message.Both("models/got", e.Name, c.store.Path(e.Name), len(r.Files)))
	return nil
}

func (c *modelsCommand) check(ctx context.Context, name string) error {
	r, err := c.store.Check(ctx, name)
	if err != nil {
		return err
	}
	if r.Files == nil {
		fmt.Fprintln(c.stdout, message.Both("models/looks-well", name))
		return nil
	}
	fmt.Fprintln(c.stdout, message.Both("models/well", name, len(r.Files)))
	return nil
}

func (c *modelsCommand) remove(name string) error {
	if err := c.store.Remove(name); err != nil {
		return err
	}
	fmt.Fprintln(c.stdout, message.Both("models/removed", name))
	return nil
}

// inspectModel looks at the files of a model or of the library.
func inspectModel(role, dir string) error {
	so := filepath.Join(dir, "libsherpa-onnx-c-api.so")
	_, err := os.Stat(so)
	if role == "library" || role == "" && err == nil {
		return sherpa.CheckLibrary(so)
	}
	_, err = modelfile.Find(dir)
	return err
}

// tryModel is a command that the server gives to itself: it loads a model where nothing depends on the process.
func tryModel(ctx context.Context, flags *flag.FlagSet, args []string, stderr io.Writer) int {
	var o sherpa.Options
	flags.StringVar(&o.Library, "library", "", "")
	flags.StringVar(&o.Language, "language", "", "")
	role := flags.String("role", "", "")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 {
		return 2
	}
	o.Model = flags.Arg(0)
	if err := sherpa.Try(ctx, o, service.Role(*role)); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// megabytes is a size for people.
func megabytes(n int64) string {
	if n == 0 {
		return "?"
	}
	return fmt.Sprintf("%d MB", (n+500_000)/1_000_000)
}

// progressBar shows how far a download is: a bar on a terminal, and a line for each tenth anywhere else.
type progressBar struct {
	out  io.Writer
	live bool

	file  string
	tenth int64
	shown time.Time
	open  bool // the line of the bar is not ended
}

func (b *progressBar) tell(p models.Progress) {
	if p.Unpacking {
		p.File = message.Both("models/unpacking", p.File)
	}
	if p.File != b.file {
		b.end()
		b.file, b.tenth = p.File, -1
	}
	if p.Total <= 0 {
		return
	}
	tenth := p.Done * 10 / p.Total
	if !b.live {
		if tenth != b.tenth {
			fmt.Fprintf(b.out, "%s %3d%% %s / %s\n", p.File, tenth*10, megabytes(p.Done), megabytes(p.Total))
		}
		b.tenth = tenth
		return
	}
	if now := time.Now(); now.Sub(b.shown) > 100*time.Millisecond || p.Done == p.Total {
		b.shown = now
		full := int(p.Done * 30 / p.Total)
		fmt.Fprintf(b.out, "\r[%s%s] %3d%% %s / %s %s\x1b[K", strings.Repeat("#", full), strings.Repeat(".", 30-full), p.Done*100/p.Total,
			megabytes(p.Done), megabytes(p.Total), p.File)
		b.open = true
	}
}

// end ends the line of the bar.
func (b *progressBar) end() {
	if b.open {
		fmt.Fprintln(b.out)
		b.open = false
	}
}
