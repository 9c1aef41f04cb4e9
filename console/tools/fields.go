package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"xiaozhi/console/ui"
	"xiaozhi/internal/text"
	"xiaozhi/mcp/schema"
)

// field is one argument of a tool in a form.
type field struct {
	Key      string // of the form
	Name     string // of the argument
	Hint     string
	Type     string // text, long, integer, number, boolean, enum, json
	Required bool
	Default  string
	Choices  []choice
	rules    property
}

// choice is one of several values. The values of a form are their places, since they may be anything.
type choice struct{ Value, Text string }

// property holds the rules of a schema for one argument, as far as a form can use them. Those that are malformed are left out.
type property struct {
	types       []string
	description string
	initial     json.RawMessage
	enum        []json.RawMessage
	least, most *float64
	length      int // at most; 0: any
	nested      bool
}

// Limits of a form. What a schema has beyond them can be written as JSON.
const (
	maxFields  = 40
	maxChoices = 200
	maxHint    = 600 // bytes
)

// wholeKey is the field for all arguments at once, as JSON.
const wholeKey = "arguments"

// fieldsOf makes the fields of a tool's form, those that are required first. whole: its schema says more than fields can, so
// that the arguments are best written as JSON.
func fieldsOf(raw json.RawMessage) (fields []field, whole bool) {
	if len(raw) > schema.MaxSize {
		return nil, true
	}
	if _, err := schema.Compile(raw); err != nil {
		return nil, true
	}
	var root map[string]json.RawMessage
	if json.Unmarshal(raw, &root) != nil {
		return nil, true
	}
	for _, key := range []string{"$ref", "allOf", "anyOf", "oneOf", "if", "not"} {
		whole = whole || root[key] != nil
	}
	var required []string
	_ = json.Unmarshal(root["required"], &required) // a list that is none says nothing
	names, properties := membersOf(root["properties"])
	if len(names) > maxFields {
		names, whole = names[:maxFields], true
	}
	for i, name := range names {
		rules := propertyOf(properties[name])
		f := field{
			Key: "arg-" + strconv.Itoa(i), Name: name, Hint: text.Cut(rules.description, maxHint), Required: slices.Contains(required, name), rules: rules,
		}
		f.Type, f.Choices = rules.widget()
		if f.Default = rules.start(f.Type); f.Default == "" && f.Type == "enum" && f.Required && len(f.Choices) > 0 {
			f.Default = f.Choices[0].Value
		}
		fields = append(fields, f)
	}
	slices.SortStableFunc(fields, func(a, b field) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return fields, whole
}

// membersOf lists the members of an object in the order in which they stand there.
func membersOf(raw json.RawMessage) (names []string, all map[string]json.RawMessage) {
	in := json.NewDecoder(bytes.NewReader(raw))
	if open, err := in.Token(); err != nil || open != json.Delim('{') {
		return nil, nil
	}
	all = map[string]json.RawMessage{}
	for in.More() {
		key, err := in.Token()
		name, ok := key.(string)
		var value json.RawMessage
		if err != nil || !ok || in.Decode(&value) != nil {
			return names, all
		}
		if _, twice := all[name]; !twice {
			names = append(names, name)
		}
		all[name] = value
	}
	return names, all
}

// propertyOf reads what a schema says of an argument.
func propertyOf(raw json.RawMessage) (p property) {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return p // true: anything
	}
	var one string
	if json.Unmarshal(all["type"], &one) == nil && one != "" {
		p.types = []string{one}
	} else {
		_ = json.Unmarshal(all["type"], &p.types)
	}
	p.types = slices.DeleteFunc(p.types, func(t string) bool { return t == "null" })
	_ = json.Unmarshal(all["description"], &p.description)
	if p.description == "" {
		_ = json.Unmarshal(all["title"], &p.description)
	}
	_ = json.Unmarshal(all["enum"], &p.enum)
	if value, there := all["const"]; there && p.enum == nil {
		p.enum = []json.RawMessage{value}
	}
	_ = json.Unmarshal(all["minimum"], &p.least)
	_ = json.Unmarshal(all["maximum"], &p.most)
	_ = json.Unmarshal(all["maxLength"], &p.length)
	p.initial = all["default"]
	for _, key := range []string{"$ref", "allOf", "anyOf", "oneOf", "not", "if"} {
		p.nested = p.nested || all[key] != nil
	}
	return p
}

// widget says how an argument is typed.
func (p property) widget() (kind string, choices []choice) {
	switch {
	case len(p.enum) > 0 && len(p.enum) <= maxChoices:
		for i, value := range p.enum {
			choices = append(choices, choice{strconv.Itoa(i), text.Cut(plain(value), maxHint)})
		}
		return "enum", choices
	case p.nested || len(p.types) != 1:
		return "json", nil
	}
	switch t := p.types[0]; t {
	case "string":
		if p.length > maxLine {
			return "long", nil
		}
		return "text", nil
	case "integer", "number", "boolean":
		return t, nil
	}
	return "json", nil
}

// maxLine is how many characters a text may have that is typed in one line.
const maxLine = 300

// plain returns a value as people write it: a text without its quotes.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// start returns the value that a field holds at first.
func (p property) start(kind string) string {
	if len(p.initial) == 0 || string(p.initial) == "null" {
		return ""
	}
	if kind != "enum" {
		if kind == "json" {
			return string(p.initial)
		}
		return plain(p.initial)
	}
	for i, value := range p.enum {
		if bytes.Equal(bytes.TrimSpace(value), bytes.TrimSpace(p.initial)) {
			return strconv.Itoa(i)
		}
	}
	return ""
}

// errMistake says that mistakes were noted in the form.
var errMistake = errors.New("a field is not as it should be")

// asked reads the arguments that were typed, as JSON, and notes mistakes at their fields. say words them.
func asked(f *ui.Form, fields []field, rules json.RawMessage, say func(id string, args ...any) string) (arguments string, err error) {
	if !f.Valid() {
		return "", errMistake // a field that is too long
	}
	if whole := f.Get(wholeKey); whole != "" {
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(whole), &object) != nil || object == nil {
			f.Wrong(wholeKey, say("tools/no-object"))
			return "", errMistake
		}
		return whole, fits(f, whole, nil, rules, say)
	}
	all := map[string]json.RawMessage{}
	for _, one := range fields {
		value, mistake := one.read(f, say)
		switch {
		case mistake != "":
			f.Wrong(one.Key, mistake)
		case value != nil:
			all[one.Name] = value
		}
	}
	if !f.Valid() {
		return "", errMistake
	}
	typed, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	return string(typed), fits(f, string(typed), fields, rules, say)
}

// named finds the argument that a schema's complaint is about.
var named = regexp.MustCompile(`^argument "((?:[^"\\]|\\.)*)": (.*)$`)

// fits holds arguments against the schema of the tool, as the server does before it calls one.
func fits(f *ui.Form, arguments string, fields []field, rules json.RawMessage, say func(id string, args ...any) string) error {
	s, err := schema.Compile(rules)
	if err != nil {
		return nil //nolint:nilerr // one that is broken takes anything
	}
	if _, _, err = s.Read(arguments); err == nil {
		return nil
	}
	key, why := "", err.Error()
	if fields == nil {
		key = wholeKey
	}
	if m := named.FindStringSubmatch(why); m != nil {
		for _, one := range fields {
			if one.Name == m[1] {
				key, why = one.Key, m[2]
			}
		}
	}
	f.Wrong(key, say("tools/schema-says", why))
	return errMistake
}

// read returns what was typed into a field as JSON; nil: nothing was.
func (d field) read(f *ui.Form, say func(id string, args ...any) string) (value json.RawMessage, mistake string) {
	typed := f.Get(d.Key)
	if d.Type == "text" || d.Type == "long" {
		typed = f.Raw(d.Key) // space is a part of it
	}
	if typed == "" {
		if d.Required {
			return nil, say("tools/required")
		}
		return nil, ""
	}
	switch d.Type {
	case "enum":
		if i, err := strconv.Atoi(typed); err == nil && i >= 0 && i < len(d.rules.enum) {
			return d.rules.enum[i], ""
		}
		return nil, say("tools/no-choice")
	case "boolean":
		if typed == "true" || typed == "false" {
			return json.RawMessage(typed), ""
		}
		return nil, say("tools/no-choice")
	case "integer", "number":
		return d.number(typed, say)
	case "json":
		if !json.Valid([]byte(typed)) {
			return nil, say("tools/no-json")
		}
		return json.RawMessage(typed), ""
	}
	if n := utf8.RuneCountInString(typed); d.rules.length > 0 && n > d.rules.length {
		return nil, say("tools/too-long", d.rules.length)
	}
	raw, err := json.Marshal(strings.ReplaceAll(typed, "\r\n", "\n"))
	if err != nil {
		return nil, say("tools/no-json")
	}
	return raw, ""
}

// wholeNumber is one as JSON writes it, also where people write a plus or zeros before it.
var wholeNumber = regexp.MustCompile(`^[+-]?[0-9]{1,18}$`)

// number reads one, within its limits.
func (d field) number(typed string, say func(id string, args ...any) string) (value json.RawMessage, mistake string) {
	n, err := strconv.ParseFloat(typed, 64)
	switch {
	case d.Type == "integer" && !wholeNumber.MatchString(typed):
		return nil, say("tools/no-integer")
	case err != nil || strings.ContainsAny(typed, "xXpP_iInN"):
		return nil, say("tools/no-number")
	case d.rules.least != nil && n < *d.rules.least:
		return nil, say("tools/too-small", short(*d.rules.least))
	case d.rules.most != nil && n > *d.rules.most:
		return nil, say("tools/too-big", short(*d.rules.most))
	case d.Type == "integer":
		i, _ := strconv.ParseInt(typed, 10, 64) // it was seen that it is one
		return json.RawMessage(strconv.FormatInt(i, 10)), ""
	}
	return json.RawMessage(short(n)), ""
}

func short(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

// Range says which numbers a field takes; "": all.
func (d field) Range() string {
	least, most := d.rules.least, d.rules.most
	switch {
	case least != nil && most != nil:
		return short(*least) + " – " + short(*most)
	case least != nil:
		return "≥ " + short(*least)
	case most != nil:
		return "≤ " + short(*most)
	}
	return ""
}
