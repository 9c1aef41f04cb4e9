package schema

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

const lampSchema = `{"type":"object","properties":{
	"volume":{"type":"integer","minimum":0,"maximum":100},
	"gain":{"type":"number"},
	"on":{"type":"boolean"},
	"theme":{"type":"string","enum":["light","dark","5","true"]},
	"maybe":{"type":["integer","null"]},
	"list":{"type":"array","items":{"type":"integer"}},
	"box":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}
},"required":["volume"]}`

// checked is what a router does with arguments.
func checked(t *testing.T, schema, arguments string) (map[string]any, []string, error) {
	t.Helper()
	s, err := Compile(json.RawMessage(schema))
	if err != nil {
		t.Fatalf("schema: %v", err)
	}
	return s.Read(arguments)
}

// What one conversation compiled serves the next, at the same time; what is done with the bytes later changes nothing.
func TestCompiledOnce(t *testing.T) {
	raw := json.RawMessage(`{"type":"object","properties":{"only_here":{"type":"integer","maximum":5}}}`)
	first, err := Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	again := slices.Clone(raw)
	copy(raw, `[`)
	second, err := Compile(again)
	if err != nil || first != second {
		t.Errorf("compiled a second time, %v", err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if got, _, err := second.Read(`{"only_here":"5"}`); err != nil || got["only_here"] != int64(5) {
				t.Errorf("%v, %v", got, err)
			}
			if _, _, err := first.Read(`{"only_here":6}`); err == nil {
				t.Error("6 was taken, of at most 5")
			}
		})
	}
	all.Wait()
	for range 2 {
		if _, err := Compile(raw); err == nil {
			t.Error("what is no JSON was compiled")
		}
	}
}

func TestCoerce(t *testing.T) {
	type m = map[string]any
	tests := map[string]struct {
		arguments string
		want      m
	}{
		"as it should be":            {`{"volume":55,"on":true,"theme":"dark"}`, m{"volume": int64(55), "on": true, "theme": "dark"}},
		"text for integer":           {`{"volume":"55"}`, m{"volume": int64(55)}},
		"text with spaces":           {`{"volume":" 55 "}`, m{"volume": int64(55)}},
		"float for integer":          {`{"volume":55.0}`, m{"volume": int64(55)}},
		"text of a float":            {`{"volume":"55.0"}`, m{"volume": int64(55)}},
		"exponent":                   {`{"volume":5e1}`, m{"volume": int64(50)}},
		"text for number":            {`{"volume":1,"gain":"0.5"}`, m{"volume": int64(1), "gain": 0.5}},
		"integer for number":         {`{"volume":1,"gain":2}`, m{"volume": int64(1), "gain": int64(2)}},
		"text for boolean":           {`{"volume":1,"on":"True"}`, m{"volume": int64(1), "on": true}},
		"number for text":            {`{"volume":1,"theme":5}`, m{"volume": int64(1), "theme": "5"}},
		"boolean for text":           {`{"volume":1,"theme":true}`, m{"volume": int64(1), "theme": "true"}},
		"null for an optional one":   {`{"volume":1,"on":null}`, m{"volume": int64(1)}},
		"null where it is allowed":   {`{"volume":1,"maybe":null}`, m{"volume": int64(1), "maybe": nil}},
		"inside a list":              {`{"volume":1,"list":["1",2.0,3]}`, m{"volume": int64(1), "list": []any{int64(1), int64(2), int64(3)}}},
		"inside an object":           {`{"volume":1,"box":{"n":"7"}}`, m{"volume": int64(1), "box": m{"n": int64(7)}}},
		"unknown ones are dropped":   {`{"volume":1,"speed":9}`, m{"volume": int64(1)}},
		"an object in a text":        {`"{\"volume\":1}"`, m{"volume": int64(1)}},
		"a big integer keeps it all": {`{"volume":1,"gain":9007199254740993}`, m{"volume": int64(1), "gain": int64(9007199254740993)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, err := checked(t, lampSchema, test.arguments)
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %#v, %v, want %#v", got, err, test.want)
			}
		})
	}
}

// TestRefused: what cannot be repaired comes back in words that name the argument.
func TestRefused(t *testing.T) {
	tests := map[string]struct{ arguments, want string }{
		"missing":               {`{}`, "volume"},
		"null for a needed one": {`{"volume":null}`, `argument "volume"`},
		"fraction":              {`{"volume":55.5}`, `argument "volume"`},
		"text of a fraction":    {`{"volume":"55.5"}`, `argument "volume": type: 55.5`},
		"words":                 {`{"volume":"loud"}`, `argument "volume": type: loud has type "string", want "integer"`},
		"hexadecimal":           {`{"volume":"0x10"}`, `argument "volume"`},
		"not a number":          {`{"volume":"NaN"}`, `argument "volume"`},
		"too large":             {`{"volume":150}`, `argument "volume": maximum: 150 is greater than 100`},
		"too small":             {`{"volume":-1}`, `argument "volume": minimum: -1 is less than 0`},
		"not in the list":       {`{"volume":1,"theme":"blue"}`, `argument "theme"`},
		"yes for boolean":       {`{"volume":1,"on":"yes"}`, `argument "on"`},
		"one for boolean":       {`{"volume":1,"on":1}`, `argument "on"`},
		"inside a list":         {`{"volume":1,"list":["x"]}`, `list`},
		"inside an object":      {`{"volume":1,"box":{}}`, `box`},
		"a list":                {`[1]`, "no JSON object"},
		"broken JSON":           {`{"volume":`, "no JSON object"},
		"two objects":           {`{"volume":1}{"volume":2}`, "more than one"},
		"text":                  {`"55"`, "no JSON object"},
		"too deep":              {`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "nested too deeply"},
		"too long":              {`{"a":"` + strings.Repeat("x", MaxSize) + `"}`, "over the limit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := checked(t, lampSchema, test.arguments)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestUnknownArguments(t *testing.T) {
	tests := map[string]struct {
		schema string
		kept   bool
		valid  bool
	}{
		"silent":             {`{"type":"object","properties":{"a":{}}}`, false, true},
		"forbidden":          {`{"type":"object","properties":{"a":{}},"additionalProperties":false}`, true, false},
		"allowed":            {`{"type":"object","properties":{"a":{}},"additionalProperties":true}`, true, true},
		"nothing is known":   {`{"type":"object"}`, true, true},
		"no properties":      {`{"type":"object","properties":{}}`, true, true},
		"known by a pattern": {`{"type":"object","properties":{"a":{}},"patternProperties":{"^x":{}}}`, true, true},
		"known by a branch":  {`{"type":"object","properties":{"a":{}},"allOf":[{"properties":{"x":{}}}]}`, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, dropped, err := checked(t, test.schema, `{"a":1,"x":[1,{"y":2}]}`)
			_, kept := got["x"]
			if kept != test.kept || (len(dropped) == 0) != test.kept || (err == nil) != test.valid {
				t.Errorf("got %v, dropped %v, %v", got, dropped, err)
			}
		})
	}
}

// TestHostileSchemas: each is refused when it is read, and none can make the
// validator run for ever.
func TestHostileSchemas(t *testing.T) {
	tower := `{"$defs":{`
	for i := range 30 {
		next := string(rune('a'+i+1)) + "x"
		tower += `"` + string(rune('a'+i)) + `x":{"allOf":[{"$ref":"#/$defs/` + next + `"},{"$ref":"#/$defs/` + next + `"}]},`
	}
	tower += `"` + string(rune('a'+30)) + `x":{}},"$ref":"#/$defs/ax"}`
	tests := map[string]string{
		"to itself":              `{"$ref":"#"}`,
		"through allOf":          `{"type":"object","allOf":[{"$ref":"#"}]}`,
		"through anyOf":          `{"type":"object","anyOf":[{},{"not":{"$ref":"#"}}]}`,
		"a circle of three":      `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"if":{"$ref":"#/$defs/c"}},"c":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`,
		"dependent schemas":      `{"dependentSchemas":{"a":{"$ref":"#"}}}`,
		"$dynamicRef":            `{"$dynamicAnchor":"n","properties":{"x":{"$dynamicRef":"#n"}}}`,
		"$id moves the root":     `{"$defs":{"a":{"$id":"x","$ref":"#"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`,
		"a name like a path":     `{"$defs":{"a/not":{},"a":{"not":{"$ref":"#/$defs/a/not"}}},"properties":{"x":{"$ref":"#/$defs/a"}}}`,
		"a tower":                tower,
		"elsewhere":              `{"$ref":"http://169.254.169.254/latest"}`,
		"a file":                 `{"$ref":"file:///etc/passwd"}`,
		"an unknown definition":  `{"properties":{"x":{"$ref":"#/$defs/none"}}}`,
		"a path":                 `{"properties":{"x":{"$ref":"#/properties/y"},"y":{}}}`,
		"a broken pattern":       `{"properties":{"x":{"type":"string","pattern":"("}}}`,
		"a type of its own":      `{"type":7}`,
		"properties are a list":  `{"type":"object","properties":[]}`,
		"no JSON":                `{`,
		"too deep":               strings.Repeat(`{"not":`, 100) + `{}` + strings.Repeat(`}`, 100),
		"too long":               `{"description":"` + strings.Repeat("x", MaxSize) + `"}`,
		"a property that is nil": `{"properties":{"x":null}}`,
	}
	for name, schema := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(schema))
			if err == nil {
				t.Fatalf("no error; a check says %v", s.check(map[string]any{"x": "y"}))
			}
		})
	}
}

// TestHonestSchemas: recursion through data, and shared definitions, are fine.
func TestHonestSchemas(t *testing.T) {
	tests := map[string]struct {
		schema, good, bad string
	}{
		"a tree": {
			`{"type":"object","properties":{"n":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"v":{"type":"integer"}},"required":["v"]}}}`,
			`{"n":{"v":1,"next":{"v":2}}}`, `{"n":{"v":1,"next":{}}}`,
		},
		"definitions": {
			`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/definitions/d"}},"definitions":{"d":{"type":"string"}}}`,
			`{"a":"x"}`, `{"a":[1]}`,
		},
		"one of": {
			`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"integer"}]}}}`,
			`{"a":3}`, `{"a":true}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, _, err := checked(t, test.schema, test.good); err != nil {
				t.Errorf("%s: %v", test.good, err)
			}
			if _, _, err := checked(t, test.schema, test.bad); err == nil {
				t.Errorf("%s: no error", test.bad)
			}
		})
	}
}

// FuzzSchema: no schema and no arguments make the check panic or hang, and what
// passed it passes again.
func FuzzSchema(f *testing.F) {
	f.Add(lampSchema, `{"volume":"55","list":["1"]}`)
	f.Add(`{"$ref":"#"}`, `{}`)
	f.Add(`{"type":"object","anyOf":[{"required":["a"]},{"not":{}}]}`, `"{\"a\":null}"`)
	f.Add(`{"properties":{"x":{"multipleOf":0}}}`, `{"x":1e400}`)
	f.Fuzz(func(t *testing.T, schema, arguments string) {
		s, err := Compile(json.RawMessage(schema))
		if err != nil {
			return
		}
		out, _, err := s.Read(arguments)
		if err != nil {
			return
		}
		data, err := json.Marshal(out)
		if err != nil {
			t.Fatalf("arguments cannot be sent: %v", err)
		}
		if _, _, err := s.Read(string(data)); err != nil {
			t.Errorf("%s passed once and failed again: %v", data, err)
		}
	})
}
