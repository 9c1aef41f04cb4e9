package devices

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"xiaozhi/internal/account"
)

// shown is the number of devices on one page of the list.
const shown = 50

// place orders a device in the list: those that are connected first, then those that were seen last, then by their ids.
// It does not move when others come or go.
type place struct {
	connected bool
	seen      time.Time // in milliseconds
	id        string
}

func (r row) place() place {
	return place{r.State.Connected(), time.UnixMilli(r.Seen.UnixMilli()), r.ID}
}

func (p place) compare(o place) int {
	rank := map[bool]int{true: 0, false: 1}
	return cmp.Or(cmp.Compare(rank[p.connected], rank[o.connected]), o.seen.Compare(p.seen), strings.Compare(p.id, o.id))
}

// String returns the parameter "after" of the page that begins behind it.
func (p place) String() string {
	kind := "o"
	if p.connected {
		kind = "c"
	}
	return kind + strconv.FormatInt(p.seen.UnixMilli(), 10) + "." + p.id
}

// placeOf reads what String has written. The error is [account.ErrPageBad].
func placeOf(after string) (p place, err error) {
	kind, at, id := after[:min(1, len(after))], "", ""
	if kind == "c" || kind == "o" {
		at, id, _ = strings.Cut(after[1:], ".")
	}
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || id == "" {
		return p, account.ErrPageBad
	}
	return place{kind == "c", time.UnixMilli(ms), id}, nil
}
