package store

import (
	"math"
	"time"
)

// Page asks for a part of a list, newest first: up to Limit rows that are older than Before. The zero value asks for
// the first fifty.
type Page struct {
	Limit  int // at most 500
	Before Cursor
}

// Cursor is the place of a row in a list. That of the last row of a page begins the next one.
type Cursor struct {
	At time.Time
	ID string
}

const (
	pageRows = 50
	MaxPage  = 500 // rows
)

// bounds are the parameters of a page: time, id, and number of rows.
func (p Page) bounds() (before int64, id string, limit int) {
	limit = p.Limit
	if limit <= 0 {
		limit = pageRows
	}
	before = math.MaxInt64
	if !p.Before.At.IsZero() {
		before = p.Before.At.UnixMilli()
	}
	return before, p.Before.ID, min(limit, MaxPage)
}
