package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
)

// NewID returns an id that is made once: a UUID of version 7, which sorts by the time at which it was made.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

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

// row is a table's row type: fields lists its columns, in the order of the table's column list, both to be read and
// to be written.
type row[T any] interface {
	*T
	fields() []any
}

// columnNames counts the columns of a list such as "id, name".
func columnNames(columns string) int { return strings.Count(columns, ",") + 1 }

// insert is the statement that writes one row of the columns.
func insert(table, columns string) string {
	var marks strings.Builder
	for i := range columnNames(columns) {
		if i > 0 {
			marks.WriteString(", ")
		}
		fmt.Fprintf(&marks, "$%d", i+1)
	}
	return "INSERT INTO " + table + " (" + columns + ") VALUES (" + marks.String() + ")"
}

// assign is the part of an UPDATE that sets each column; the parameters are numbered from one.
func assign(columns string) string {
	var set strings.Builder
	for i, name := range strings.Split(columns, ", ") {
		if i > 0 {
			set.WriteString(", ")
		}
		fmt.Fprintf(&set, "%s = $%d", name, i+1)
	}
	return set.String()
}

// queryer reads rows; connections and transactions implement it.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// list reads all rows of a query.
func list[T any, R row[T]](ctx context.Context, q queryer, query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		var one T
		if err := rows.Scan(R(&one).fields()...); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// first reads the first row of a query, or returns [ErrNotFound].
func first[T any, R row[T]](ctx context.Context, q queryer, query string, args ...any) (T, error) {
	all, err := list[T, R](ctx, q, query, args...)
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}

// count reads one number.
func count(ctx context.Context, q queryer, query string, args ...any) (n int, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&n)
	}
	return n, errors.Join(err, rows.Err())
}

// Columns that may be NULL have fields whose zero value stands for it. The types below join a field to its column, in
// both directions.
type (
	stamp           struct{ at *time.Time } // milliseconds since 1970; NULL is the zero time
	text            struct{ s *string }     // NOT NULL
	maybe           struct{ s *string }     // NULL is ""
	whole           struct{ n *int }        // NOT NULL
	number          struct{ n *int }        // NULL is 0
	choice          struct{ n **int }       // NULL is nil
	span            struct{ d *time.Duration }
	flag            struct{ b *bool }
	words           struct{ all *[]string } // without spaces; NULL is none
	enum[S ~string] struct{ s *S }          // NOT NULL
)

func (c stamp) Value() (driver.Value, error) {
	if c.at.IsZero() {
		return nil, nil
	}
	return c.at.UnixMilli(), nil
}

func (c stamp) Scan(src any) error {
	var n sql.NullInt64
	err := n.Scan(src)
	*c.at = time.Time{}
	if n.Valid {
		*c.at = time.UnixMilli(n.Int64).UTC()
	}
	return err
}

// orNow returns at, or the time now if it is not set.
func orNow(at time.Time, now func() time.Time) time.Time {
	if at.IsZero() {
		return now()
	}
	return at
}

// clean takes out what a text of a database cannot hold: PostgreSQL refuses a zero byte and what is not UTF-8.
func clean(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}

func (c text) Value() (driver.Value, error) { return clean(*c.s), nil }
func (c text) Scan(src any) error           { return maybe(c).Scan(src) }

func (c maybe) Value() (driver.Value, error) {
	if *c.s == "" {
		return nil, nil
	}
	return clean(*c.s), nil
}

func (c maybe) Scan(src any) error {
	var n sql.NullString
	err := n.Scan(src)
	*c.s = n.String
	return err
}

func (c whole) Value() (driver.Value, error) { return int64(*c.n), nil }
func (c whole) Scan(src any) error           { return number(c).Scan(src) }
func (c flag) Value() (driver.Value, error)  { return *c.b, nil }

func (c flag) Scan(src any) error {
	var n sql.NullBool
	err := n.Scan(src)
	*c.b = n.Bool
	return err
}

func (c number) Value() (driver.Value, error) {
	if *c.n == 0 {
		return nil, nil
	}
	return int64(*c.n), nil
}

func (c number) Scan(src any) error {
	var n sql.NullInt64
	err := n.Scan(src)
	*c.n = int(n.Int64)
	return err
}

func (c choice) Value() (driver.Value, error) {
	if *c.n == nil {
		return nil, nil
	}
	return int64(**c.n), nil
}

func (c choice) Scan(src any) error {
	var n sql.NullInt64
	err := n.Scan(src)
	*c.n = nil
	if n.Valid {
		v := int(n.Int64)
		*c.n = &v
	}
	return err
}

func (c span) Value() (driver.Value, error) {
	if *c.d == 0 {
		return nil, nil
	}
	return c.d.Milliseconds(), nil
}

func (c span) Scan(src any) error {
	var n sql.NullInt64
	err := n.Scan(src)
	*c.d = time.Duration(n.Int64) * time.Millisecond
	return err
}

func (c enum[S]) Value() (driver.Value, error) { return string(*c.s), nil }

func (c enum[S]) Scan(src any) error {
	var n sql.NullString
	err := n.Scan(src)
	*c.s = S(n.String)
	return err
}

func (c words) Value() (driver.Value, error) {
	all := strings.Join(*c.all, " ")
	return maybe{&all}.Value()
}

func (c words) Scan(src any) error {
	var all string
	err := maybe{&all}.Scan(src)
	*c.all = nil
	if all != "" {
		*c.all = strings.Fields(all)
	}
	return err
}
