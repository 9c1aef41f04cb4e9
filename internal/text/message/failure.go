package message

import "errors"

// Failure says how an error is told to people and programs.
type Failure struct {
	Err    error
	Status int    // of an answer by HTTP
	ID     string // of the message
}

// FailureOf returns the first of all failures that err is; false: it is none of them.
func FailureOf(err error, all []Failure) (Failure, bool) {
	for _, f := range all {
		if errors.Is(err, f.Err) {
			return f, true
		}
	}
	return Failure{}, false
}
