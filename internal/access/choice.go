package access

import (
	"net/http"
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// ChoiceError says that a parameter of a query has none of the values that it can have.
type ChoiceError struct {
	Name   string
	Values []string
}

// Error names the values in both languages.
func (e *ChoiceError) Error() string {
	return message.Both("access/choice", e.Name, strings.Join(e.Values, ", "))
}

// In names the values in one language.
func (e *ChoiceError) In(lang text.Lang) string {
	return message.In(lang, "access/choice", e.Name, strings.Join(e.Values, ", "))
}

// Choice reads a parameter of a query that has few values; "": it is not there, or empty. The error is a [*ChoiceError].
func Choice(r *http.Request, name string, values ...string) (string, error) {
	v := r.URL.Query().Get(name)
	if v == "" || slices.Contains(values, v) {
		return v, nil
	}
	return "", &ChoiceError{name, values}
}

// Switch reads a parameter of a query that is 1 or 0.
func Switch(r *http.Request, name string) (bool, error) {
	v, err := Choice(r, name, "0", "1")
	return v == "1", err
}
