package routine

import "context"

// Store keeps routines. What it has returned from without an error is not lost. All methods may be called at any time.
type Store interface {
	// Load returns all routines; of one that stands in a file only ID, Source and State count.
	Load(ctx context.Context) ([]Routine, error)
	// Put keeps a routine in place of the one of its ID.
	Put(ctx context.Context, r Routine) error
	// Delete forgets one; it is no error if there is none.
	Delete(ctx context.Context, id string) error
}

// Nowhere is a [Store] that keeps nothing: routines end with the program.
type Nowhere struct{}

// Load returns none.
func (Nowhere) Load(context.Context) ([]Routine, error) { return nil, nil }

// Put does nothing.
func (Nowhere) Put(context.Context, Routine) error { return nil }

// Delete does nothing.
func (Nowhere) Delete(context.Context, string) error { return nil }
