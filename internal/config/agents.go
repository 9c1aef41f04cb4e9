package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"

	"xiaozhi/mcp/local"
	"xiaozhi/mcp/rawjson"
	"xiaozhi/prompts"
)

// Persona configures an agent: whom a device talks to. What is not set is that of the
// device, of the section agent and of the chains of all.
type Persona struct {
	Prompt    string      `koanf:"prompt"`      // name of a prompt; "": the one that is called like the agent, or that of all
	Text      string      `koanf:"prompt_text"` // a prompt in place of one that has a name; "": there is none
	Language  string      `koanf:"language"`    // a tag such as zh, en or ja; "": the device's
	Voice     string      `koanf:"voice"`
	ASR       []string    `koanf:"asr"` // chains; empty: those of all
	LLM       []string    `koanf:"llm"`
	TTS       []string    `koanf:"tts"`
	Vision    []string    `koanf:"vision"`
	Realtime  []string    `koanf:"realtime"` // [NoChain] in it: none, also where that of all has members
	Tools     DeviceTools `koanf:"tools"`
	Memory    string      `koanf:"memory"`     // keep, summary, talk, forget or "": keep
	Record    string      `koanf:"record"`     // off, user, both or "": that of all
	WakeWords []string    `koanf:"wake_words"` // empty: those of all
	ExitWords []string    `koanf:"exit_words"` // empty: those of all
	Knowledge []string    `koanf:"knowledge"`  // folders of documents; empty: the one in the data folder that is called like the agent
	People    []string    `koanf:"people"`     // names of those who talk to it on every device that says nothing else of them

	Place string `koanf:"-"` // where it is set, for people; "": not in the settings
}

// The values of [Persona].Memory. By "" everything is remembered.
const (
	Remember  = "keep"    // facts and a summary of earlier talks
	Summarise = "summary" // the summary alone
	TalkOnly  = "talk"    // the talk that goes on, no more
	Forget    = "forget"  // not even that after the conversation
)

// Original is the name by which a device's own agent is called back: no other has it.
const Original = "original"

// AgentNames lists the agents there are, sorted: those of the settings, and each prompt.
func (c *Config) AgentNames(prompts []string) []string {
	names := append(slices.Collect(maps.Keys(c.Agents)), prompts...)
	slices.Sort(names)
	return slices.Compact(names)
}

// promptNames lists the prompts of the program and of the data folder. nil: they cannot
// be read, which is told where they are used.
func promptNames(data string) []string {
	folder := ""
	if data != "" {
		folder = filepath.Join(data, "prompts")
	}
	set, err := prompts.Load(folder)
	if err != nil {
		return nil
	}
	return set.Names()
}

// ReadAgent reads the settings of one agent from JSON that has the keys of agents.NAME, and checks them against these
// settings as those of a file are checked. prompts are the names of those that there are. The error joins everything
// that is wrong, each an [*Error] without a place.
func (c *Config) ReadAgent(name string, doc []byte, prompts []string) (Persona, error) {
	found := newFindings()
	p, at := Persona{}, []string{"agents", name}
	if root := parseYAML("", doc, found); root != nil {
		value, _ := reader{"", found}.read(root, reflect.TypeFor[Persona](), at)
		tree, _ := value.(map[string]any)
		k := koanf.New(keySeparator)
		if err := errors.Join(k.Load(confmap.Provider(tree, ""), nil), k.Unmarshal("", &p)); err != nil {
			return p, fmt.Errorf("decode the agent %s: %w", name, err)
		}
	}
	ch := checker{found, prompts, nil, knownTypes()}
	ch.checkPersona(c, name, p)
	if len(p.Knowledge) > 0 { // else whoever may change an agent could have it read any file
		ch.bad(append(at, "knowledge"), "config/knowledge-file")
	}
	for _, problem := range found.problems {
		if e, ok := errors.AsType[*Error](problem); ok {
			e.Place = ""
		}
	}
	return p, errors.Join(found.problems...)
}

// Errors lists what is wrong of what an error joins. One that is no [*Error] is one without a key.
func Errors(err error) (all []*Error) {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok { //nolint:errorlint // what wraps one is another
		return []*Error{e}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			all = append(all, Errors(one)...)
		}
		return all
	}
	return []*Error{{English: err.Error()}}
}

// Doc returns the settings of an agent that are set, as [Config.ReadAgent] reads them.
func (p Persona) Doc() []byte {
	tree := map[string]any{}
	set := func(into map[string]any, t reflect.Type, v reflect.Value) {
		for _, f := range keyFields(t) {
			if value := v.FieldByIndex(f.Index); !value.IsZero() && f.Type.Kind() != reflect.Struct {
				into[f.Tag.Get("koanf")] = value.Interface()
			}
		}
	}
	set(tree, reflect.TypeFor[Persona](), reflect.ValueOf(p))
	tools := map[string]any{}
	if set(tools, reflect.TypeFor[DeviceTools](), reflect.ValueOf(p.Tools)); len(tools) > 0 {
		tree["tools"] = tools
	}
	data, err := rawjson.Marshal(tree)
	if err != nil { // texts and lists of them always have a form
		return []byte("{}")
	}
	return data
}

// ListOfAgent reports whether a key of an agent, such as llm or tools.deny, holds a list. A key that does not exist
// holds none.
func ListOfAgent(key string) bool {
	t := reflect.TypeFor[Persona]()
	for name := range strings.SplitSeq(key, ".") {
		child, ok := childType(t, name)
		if !ok {
			return false
		}
		t = child
	}
	return t.Kind() == reflect.Slice
}

func (ch checker) checkAgents(c *Config) {
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		p := c.Agents[name]
		p.Place = ch.place("agents", name)
		c.Agents[name] = p
		ch.checkPersona(c, name, p)
	}
	for id, d := range c.Devices.ByID {
		if d.Agent != "" {
			d.AgentPlace = ch.place("devices", id, "agent")
			c.Devices.ByID[id] = d
		}
	}
	if c.Agent.Prompt != prompts.Default { // which is always there
		c.Agent.PromptPlace = ch.place("agent", "prompt")
	}
	names := c.AgentNames(ch.prompts)
	if ch.prompts == nil || !ch.whole() || !ch.whole("agents") {
		return // the one that is meant may be what could not be read
	}
	for _, id := range slices.Sorted(maps.Keys(c.Devices.ByID)) {
		if agent := c.Devices.ByID[id].Agent; agent != "" && !slices.Contains(names, agent) {
			ch.bad(key("devices", id, "agent"), "config/no-agent", agent, prompts.Nearest(agent, names))
		}
		people := c.Devices.ByID[id].People
		for _, person := range slices.Sorted(maps.Keys(people)) {
			if agent := people[person]; !slices.Contains(names, agent) {
				ch.bad(key("devices", id, "people", person), "config/no-agent", agent, prompts.Nearest(agent, names))
			}
		}
	}
}

func (ch checker) checkPersona(c *Config, name string, p Persona) {
	at := func(names ...string) []string { return append([]string{"agents", name}, names...) }
	if name == Original || strings.TrimSpace(name) == "" {
		ch.bad(at(), "config/agent-reserved", name)
	}
	if p.Prompt != "" && ch.prompts != nil && !slices.Contains(ch.prompts, p.Prompt) {
		ch.bad(at("prompt"), "config/no-prompt", p.Prompt, prompts.Nearest(p.Prompt, ch.prompts))
	}
	ch.checkText(p, at("prompt_text")...)
	if p.Language != "" {
		ch.language(p.Language, at("language")...)
	}
	if p.Memory != "" {
		ch.oneOf(p.Memory, []string{Remember, Summarise, TalkOnly, Forget}, at("memory")...)
	}
	ch.checkRecord(c, p.Record, at("record")...)
	ch.checkToolNames(p.Tools.Allow, at("tools", "allow")...)
	ch.checkToolNames(p.Tools.Deny, at("tools", "deny")...)
	ch.checkChain(c, p.ASR, roleASR, at(roleASR)...)
	ch.checkChain(c, p.LLM, roleLLM, at(roleLLM)...)
	ch.checkChain(c, p.TTS, roleTTS, at(roleTTS)...)
	ch.checkChain(c, p.Vision, roleVLM, at(roleVLM)...)
	ch.checkChain(c, p.Realtime, roleRealtime, at(roleRealtime)...)
	checkFolders(ch, p.Knowledge, at("knowledge")...)
	checkPeople(ch, c, name, p.People, at("people")...)
	ch.checkVoiceOf(c, p, at("voice")...)
	checkVoiceThere(ch, c, p.Voice, p.Realtime, at("voice")...)
}

// maxFolders is how many folders of documents an agent may have.
const maxFolders = 32

// checkFolders reports folders that are none, or too many. Whether they are there is looked at while the server runs: a disk
// may come later.
func checkFolders(ch checker, folders []string, at ...string) {
	if len(folders) > maxFolders {
		ch.bad(at, "config/knowledge-many", len(folders), maxFolders)
	}
	seen := map[string]bool{}
	for _, f := range folders {
		switch clean := filepath.Clean(f); {
		case strings.TrimSpace(f) == "":
			ch.bad(at, "config/knowledge-empty")
		case seen[clean]:
			ch.bad(at, "config/knowledge-twice", f)
		default:
			seen[clean] = true
		}
	}
}

// maxPromptText is how long a prompt may be that stands in the settings, in bytes.
const maxPromptText = 32 << 10

// checkText reports a prompt that is no text, is too long, or stands beside the name of another.
func (ch checker) checkText(p Persona, at ...string) {
	switch {
	case p.Text == "":
	case strings.TrimSpace(p.Text) == "":
		ch.bad(at, "config/text-empty")
	case len(p.Text) > maxPromptText:
		ch.bad(at, "config/text-long", len(p.Text), maxPromptText)
	case p.Prompt != "":
		ch.bad(at, "config/text-twice", p.Prompt)
	}
}

// checkToolNames reports patterns that cannot be read, and names that are those of our own tools but for a slip. Other
// names may be those of tools that devices and other servers bring.
func (ch checker) checkToolNames(list []string, at ...string) {
	ch.patterns(list, at...)
	for _, name := range list {
		if meant, ok := prompts.Misspelt(name, local.Names()); ok {
			ch.bad(at, "config/no-tool", name, meant)
		}
	}
}

// LocalVoices are the voices of the type local. Every other type has voices that only its service knows.
func LocalVoices() []string { return []string{"awb", "kal", "kal16", "rms", "slt"} }

// checkVoiceOf reports a voice that nobody can have who speaks for an agent.
func (ch checker) checkVoiceOf(c *Config, p Persona, at ...string) {
	chain := p.TTS
	if len(chain) == 0 {
		chain = c.TTS
	}
	unlike := func(name string) bool {
		if name == "auto" {
			return c.around.cloudVoices
		}
		section, ok := c.Providers[name]
		return ok && section.Type != "local" || !ok && name != "local"
	}
	if ch.types.spoken(c, p.Voice, p.Realtime) {
		return
	}
	if p.Voice == "" || len(chain) == 0 || slices.ContainsFunc(chain, unlike) || slices.Contains(LocalVoices(), p.Voice) {
		return
	}
	chain = slices.DeleteFunc(slices.Clone(chain), func(name string) bool { return name == "auto" })
	known := LocalVoices()
	for _, names := range ch.types.realtimeVoices(c, p.Realtime) {
		known = append(known, names...)
	}
	slices.Sort(known)
	ch.bad(at, "config/no-voice", p.Voice, strings.Join(chain, ", "), prompts.Nearest(p.Voice, known))
}
