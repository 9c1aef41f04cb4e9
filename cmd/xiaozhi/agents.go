package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"xiaozhi/internal/config"
	"xiaozhi/internal/roster"
	"xiaozhi/internal/text/message"
)

const agentsUsage = `usage: xiaozhi agents [flags] [list]
       xiaozhi agents [flags] show NAME | revisions NAME | delete NAME | restore NAME REV
       xiaozhi agents [flags] set NAME [--note TEXT] KEY=VALUE... | set NAME [--note TEXT] --file FILE

%s
%s

`

// agentsCommand is something that can be asked for, with the words that it takes.
type agentsCommand struct {
	wants       string
	least, most int
	do          func(c toolsClient, ctx context.Context, args []string) error
}

func agentsCommands() map[string]agentsCommand {
	return map[string]agentsCommand{
		"list":      {"", 0, 0, toolsClient.agents},
		"show":      {"NAME", 1, 1, toolsClient.agent},
		"revisions": {"NAME", 1, 1, toolsClient.revisions},
		"delete":    {"NAME", 1, 1, toolsClient.deleteAgent},
		"restore":   {"NAME REV", 2, 2, toolsClient.restoreAgent},
		"set":       {"NAME KEY=VALUE / NAME --file FILE", 2, 100, toolsClient.setAgent},
	}
}

// errMisused is an error of who typed the command.
var errMisused = errors.New("misused")

// agents is the subcommand. It returns 0 when it was done, 1 when the server did not do it, and 2 when it was misused.
func agents(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, rest, code, ok := parseClient("agents", agentsUsage, "agents/usage", time.Minute, args, stdout, stderr)
	if !ok {
		return code
	}
	name := "list"
	if len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	}
	command, ok := agentsCommands()[name]
	if !ok {
		fmt.Fprintln(stderr, "xiaozhi agents:", wrongWord(name, agentsCommands()))
		return 2
	}
	if len(rest) < command.least || len(rest) > command.most {
		fmt.Fprintln(stderr, "xiaozhi agents:", message.Both("known/wants", name, command.wants))
		return 2
	}
	err := c.findToken()
	if err == nil {
		err = command.do(c, ctx, rest)
	}
	if err != nil {
		fmt.Fprintln(stderr, "xiaozhi agents:", strings.TrimPrefix(err.Error(), errMisused.Error()+": "))
		if errors.Is(err, errMisused) {
			return 2
		}
		return 1
	}
	return 0
}

func agentPath(name string) string { return roster.Path + "/" + url.PathEscape(name) }

// agents lists the agents.
func (c toolsClient) agents(ctx context.Context, _ []string) error {
	var list roster.AgentList
	if err := c.ask(ctx, http.MethodGet, roster.Path, nil, &list); err != nil || c.asJSON {
		return err
	}
	for _, a := range list.Agents {
		line := []string{a.Name, from(a)}
		switch {
		case a.Place != "":
			line = append(line, a.Place)
		case a.Rev > 0:
			line = append(line, message.Both("agents/rev", a.Rev), a.By, a.At.Local().Format(time.DateTime))
		}
		if len(a.Devices) > 0 {
			line = append(line, strings.Join(a.Devices, " "))
		}
		if a.Shadowed {
			line = append(line, message.Both("agents/shadowed"))
		}
		if a.Trouble != "" {
			line = append(line, message.Both("agents/trouble", a.Trouble))
		}
		fmt.Fprintln(c.out, plainText(strings.Join(line, "  ")))
	}
	return nil
}

// from says where an agent is set.
func from(a roster.Agent) string {
	switch a.From {
	case "settings":
		return message.Both("agents/from-settings")
	case "store":
		return message.Both("agents/from-store")
	default:
		return message.Both("agents/from-prompt")
	}
}

// agent shows one agent with its settings.
func (c toolsClient) agent(ctx context.Context, args []string) error {
	var a roster.Agent
	if err := c.ask(ctx, http.MethodGet, agentPath(args[0]), nil, &a); err != nil || c.asJSON {
		return err
	}
	return c.printAgent(a)
}

func (c toolsClient) printAgent(a roster.Agent) error {
	var settings bytes.Buffer
	if err := json.Indent(&settings, a.Settings, "", "  "); err != nil {
		return err
	}
	head := []string{a.Name, from(a)}
	if a.Rev > 0 {
		head = append(head, message.Both("agents/rev", a.Rev))
	}
	if a.Trouble != "" {
		head = append(head, message.Both("agents/trouble", a.Trouble))
	}
	fmt.Fprintf(c.out, "%s\n%s\n", plainText(strings.Join(head, "  ")), plainText(settings.String()))
	return nil
}

// revisions lists what an agent was, the newest first.
func (c toolsClient) revisions(ctx context.Context, args []string) error {
	var list roster.RevisionList
	if err := c.ask(ctx, http.MethodGet, agentPath(args[0])+"/revisions", nil, &list); err != nil || c.asJSON {
		return err
	}
	for _, r := range list.Revisions {
		line := []string{strconv.Itoa(r.Rev), r.At.Local().Format(time.DateTime), r.By, string(r.Settings)}
		if r.Note != "" {
			line = append(line, r.Note)
		}
		fmt.Fprintln(c.out, plainText(strings.Join(line, "  ")))
	}
	return nil
}

func (c toolsClient) deleteAgent(ctx context.Context, args []string) error {
	var done struct{}
	if err := c.ask(ctx, http.MethodDelete, agentPath(args[0]), nil, &done); err != nil || c.asJSON {
		return err
	}
	fmt.Fprintln(c.out, message.Both("known/done", plainText(args[0])))
	return nil
}

func (c toolsClient) restoreAgent(ctx context.Context, args []string) error {
	rev, err := strconv.Atoi(args[1])
	if err != nil || rev < 1 {
		return fmt.Errorf("%w: %s", errMisused, message.Both("known/wants", "restore", agentsCommands()["restore"].wants))
	}
	return c.change(ctx, http.MethodPost, agentPath(args[0])+"/restore", roster.RestoreOrder{Rev: rev})
}

// change changes an agent and shows it as it is then.
func (c toolsClient) change(ctx context.Context, method, path string, body any) error {
	var a roster.Agent
	if err := c.ask(ctx, method, path, body, &a); err != nil || c.asJSON {
		return err
	}
	return c.printAgent(a)
}

// setAgent changes single settings of an agent, or takes all of them from a file.
func (c toolsClient) setAgent(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("set", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	file, note := flags.String("file", "", ""), flags.String("note", "", "")
	misused := func(id string, args ...any) error { return fmt.Errorf("%w: %s", errMisused, message.Both(id, args...)) }
	if err := flags.Parse(args[1:]); err != nil {
		return misused("known/wants", "set", agentsCommands()["set"].wants)
	}
	path := agentPath(args[0])
	if *note != "" {
		path += "?note=" + url.QueryEscape(*note)
	}
	if pairs := flags.Args(); *file == "" && len(pairs) > 0 {
		patch, err := patchOf(pairs)
		if err != nil {
			return fmt.Errorf("%w: %w", errMisused, err)
		}
		return c.change(ctx, http.MethodPatch, path, patch)
	}
	if *file == "" || flags.NArg() > 0 {
		return misused("known/wants", "set", agentsCommands()["set"].wants)
	}
	doc, err := readAgent(*file)
	if err != nil {
		return err
	}
	return c.change(ctx, http.MethodPut, path, doc)
}

// patchOf reads settings that are written as KEY=VALUE: lists with commas between their items, and nothing where a
// setting is to be inherited.
func patchOf(pairs []string) (map[string]any, error) {
	patch := map[string]any{}
	for _, pair := range pairs {
		key, written, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, errors.New(message.Both("agents/pair", pair))
		}
		var value any = written
		switch {
		case written == "":
			value = nil
		case config.ListOfAgent(key):
			items := strings.Split(written, ",")
			for i := range items {
				items[i] = strings.TrimSpace(items[i])
			}
			value = items
		}
		section := patch
		names := strings.Split(key, ".")
		for _, name := range names[:len(names)-1] {
			below, ok := section[name].(map[string]any)
			if !ok {
				below = map[string]any{}
				section[name] = below
			}
			section = below
		}
		section[names[len(names)-1]] = value
	}
	return patch, nil
}

// readAgent reads settings from a file of YAML, which JSON is too. They stand alone, or below agents: and the one name
// that is there.
func readAgent(file string) (map[string]any, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if all, ok := doc["agents"].(map[string]any); ok && len(doc) == 1 && len(all) == 1 {
		only := slices.Collect(maps.Values(all))[0]
		if doc, ok = only.(map[string]any); !ok {
			doc = map[string]any{}
		}
	}
	if doc == nil {
		doc = map[string]any{}
	}
	return doc, nil
}
