package ui

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
)

// PageRows is how many rows a page of a list has.
const PageRows = 50

// A search looks at so many rows of a long list at a time, and goes through so many at once.
const (
	scanned = 500
	scanMax = 5000
)

// Scan searches a list that is too long to be read as a whole, from its newest row on, until it has found the rows of a page. read
// returns up to n rows behind one; nil: from where the page begins. end is the row behind which the list goes on; nil: it has been read.
func Scan[T any](search string, read func(after *T, n int) ([]T, error), text func(T) string) (found []T, end *T, err error) {
	n := PageRows + 1
	if search = strings.ToLower(search); search != "" {
		n = scanned
	}
	for looked := 0; ; {
		all, err := read(end, n)
		if err != nil {
			return nil, nil, err
		}
		for i := range all {
			end = &all[i]
			if search != "" && !strings.Contains(strings.ToLower(text(all[i])), search) {
				continue
			}
			if found = append(found, all[i]); len(found) > PageRows {
				return found[:PageRows], &found[PageRows-1], nil
			}
		}
		if len(all) < n {
			return found, nil, nil
		}
		if looked += n; looked >= scanMax {
			return found, end, nil
		}
	}
}

// searchable is how many rows a short list has that needs no search.
const searchable = 8

// maxKey limits the place in a list that an address names, in bytes.
const maxKey = 256

// List says how a list is searched and taken apart into pages.
type List[T any] struct {
	Path string             // of the page that shows it
	Name string             // tells it from other lists of its page: it begins the parameters q and after, and is the id of the part that holds the list
	Key  func(row T) string // the place of a row, which no other one has: rows stand in the order of their keys
	Text func(row T) string // that is searched
	// Newest has the rows stand with the newest first, by keys of [access.Before].
	Newest bool
	Size   int // of a page; 0: [PageRows]
}

// Rows is a page of a list.
type Rows[T any] struct {
	Rows   []T
	Path   string // of its beginning
	Field  string // name of the parameter that searches
	Search string
	Next   string // path of the next page; "": there is none
	First  bool   // it is the first page of all rows
	Many   bool   // these are enough to be searched
	Failed bool   // why there are no rows is the trouble of the page
}

// Page returns those of all rows that an address asks for. Of rows that could not be read, by err, it keeps what is searched for. The
// error is err, or [account.ErrPageBad].
func (l List[T]) Page(r *http.Request, all []T, err error) (Rows[T], error) {
	prefix := ""
	if l.Name != "" {
		prefix = l.Name + "-"
	}
	query := r.URL.Query()
	after := query.Get(prefix + "after")
	p := Rows[T]{Path: l.Path, Field: prefix + "q", Search: strings.TrimSpace(query.Get(prefix + "q"))}
	p.First, p.Many = p.Search == "" && after == "", p.Search != "" || len(all) > searchable
	if l.Name != "" {
		p.Path += "#" + l.Name
	}
	if err == nil {
		err = l.check(after)
	}
	if err != nil {
		p.Failed = true
		return p, err
	}
	search := strings.ToLower(p.Search)
	for _, row := range all {
		if (after == "" || l.compare(after, l.Key(row)) < 0) && (search == "" || strings.Contains(strings.ToLower(l.Text(row)), search)) {
			p.Rows = append(p.Rows, row)
		}
	}
	slices.SortStableFunc(p.Rows, func(a, b T) int { return l.compare(l.Key(a), l.Key(b)) })
	if size := cmp.Or(l.Size, PageRows); len(p.Rows) > size {
		p.Rows = p.Rows[:size]
		query.Set(prefix+"after", l.Key(p.Rows[size-1]))
		p.Next = l.Path + "?" + query.Encode()
		if l.Name != "" {
			p.Next += "#" + l.Name
		}
	}
	return p, nil
}

func (l List[T]) compare(a, b string) int {
	if l.Newest {
		a, b = b, a
	}
	return strings.Compare(a, b)
}

// check says whether a key is none that a row could have.
func (l List[T]) check(key string) error {
	if key == "" {
		return nil
	}
	if l.Newest {
		_, err := access.ParseBefore(key)
		return err
	}
	if len(key) > maxKey || !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl) {
		return account.ErrPageBad
	}
	return nil
}
