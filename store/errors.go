package store

import (
	"errors"
	"fmt"
)

// errData says that a value can never be written.
var errData = errors.New("the value cannot be kept")

// refusal is an error of a caller's function that was run in a transaction: it says nothing of the database.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// refused marks an error of a caller's function.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return refusal{err}
}

// BrokenError says that the file of the database cannot be read. The file was not changed.
type BrokenError struct {
	Path   string
	Backup string // the newest copy that was found; "": there is none
	Err    error
}

// Error says where the file is and what may take its place.
func (e *BrokenError) Error() string {
	with := "a backup"
	if e.Backup != "" {
		with = e.Backup
	}
	return fmt.Sprintf("%s is not a sound database and was left as it is: %v; move it away and restore %s", e.Path, e.Err, with)
}

// Unwrap returns what the database said.
func (e *BrokenError) Unwrap() error { return e.Err }

// NewerError says that a newer program has changed the schema of the database.
type NewerError struct {
	Path       string
	Has, Knows int64  // versions of the schema
	Backup     string // the copy from before the change; "": none was found
}

// Error says what to do.
func (e *NewerError) Error() string {
	hint := "run that program"
	if e.Backup != "" {
		hint += ", or put back the copy " + e.Backup
	}
	return fmt.Sprintf("%s was changed by a newer program: its schema has version %d, this program knows %d; %s", e.Path, e.Has, e.Knows, hint)
}

// LockedError says that another server uses the database.
type LockedError struct {
	Path string
	PID  int // 0: not known
}

// Error says who has it.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s is used by %s", e.Path, who)
}

// ForeignError says that the file holds a database of another program.
type ForeignError struct{ Path string }

// Error names the file.
func (e *ForeignError) Error() string { return e.Path + " is a database of another program" }
