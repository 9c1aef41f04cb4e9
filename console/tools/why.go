package tools

import (
	"html/template"
	"strings"

	"xiaozhi/mcp/router"
)

// Reason is why a tool is as it is: a text of the page, and what of the settings or of the tool it is about.
type Reason struct {
	ID string // of the text, which takes Of if there is any
	Of string
}

// kindReason is why a tool is a control or a query, by the words of [mcp.ExplainKind].
func kindReason(why string) Reason {
	if pattern, ok := strings.CutPrefix(why, "tools.kinds: "); ok {
		return Reason{"tools/why-setting", pattern}
	}
	if word, ok := strings.CutPrefix(why, "its name begins with "); ok {
		return Reason{"tools/why-name", word}
	}
	switch why {
	case "the tool declares it":
		return Reason{"tools/why-declared", ""}
	case "readOnlyHint":
		return Reason{"tools/why-hint", ""}
	}
	return Reason{"tools/why-default", ""}
}

// asksReason is why somebody must say yes before a tool is called, by the words of the gate.
func asksReason(why string) Reason {
	if pattern, ok := strings.CutPrefix(why, "tools.confirm: "); ok {
		return Reason{"tools/asks-setting", pattern}
	}
	if why == "destructiveHint" {
		return Reason{"tools/asks-destroys", ""}
	}
	return Reason{"tools/asks-stranger", ""}
}

// hiddenReason is why the model is not offered a tool.
func hiddenReason(why string) Reason {
	if pattern, ok := strings.CutPrefix(why, "deny: "); ok {
		return Reason{"tools/hidden-deny", pattern}
	}
	switch why {
	case router.ForPeople:
		return Reason{"tools/hidden-people", ""}
	case router.Replaced:
		return Reason{"tools/hidden-replaced", ""}
	}
	return Reason{"tools/hidden-allow", ""}
}

// KindWhy is why it is a control or a query.
func (w row) KindWhy() Reason { return kindReason(w.Why) }

// AsksWhy is why somebody must say yes first.
func (w row) AsksWhy() Reason { return asksReason(w.Asks) }

// Personal reports whether it is meant for people, who may call it, and hidden from the model for that alone.
func (w row) Personal() bool { return w.Hidden == router.ForPeople }

// HiddenWhy is why the model is not offered it.
func (w row) HiddenWhy() Reason { return hiddenReason(w.Hidden) }

// Family is the kind of its source.
func (w row) Family() string { return familyOf(w.Tool.Source) }

// Server is whose tool it is, of other people's servers.
func (w row) Server() string {
	_, name, _ := strings.Cut(w.Tool.Source, ":")
	return name
}

// Parts are the parts of its name, between which a line may break.
func (w row) Parts() []string { return partsOf(w.Tool.Name) }

// partsOf splits a name behind its dots and underscores.
func partsOf(name string) (all []string) {
	for part := range strings.SplitAfterSeq(name, ".") {
		for piece := range strings.SplitAfterSeq(part, "_") {
			if piece != "" {
				all = append(all, piece)
			}
		}
	}
	return all
}

// picture is one that a page shows in itself.
type picture struct {
	Source template.URL
	Size   int
}
