package account

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"xiaozhi/store"
)

// Role says what somebody may do.
type Role = store.Role

// The roles, the strongest first.
const (
	Owner  = store.Owner  // everything
	Member = store.Member // their own devices and talks
	Viewer = store.Viewer // health and counts: no words, no sound
)

// Roles lists all roles, the strongest first.
func Roles() []Role { return []Role{Owner, Member, Viewer} }

// ParseRole returns the role of a name.
func ParseRole(name string) (Role, error) {
	if r := Role(name); slices.Contains(Roles(), r) {
		return r, nil
	}
	return "", ErrRoleUnknown
}

// atLeast reports whether a role includes another one. An unknown role includes nothing.
func atLeast(r, least Role) bool {
	all := Roles()
	has, needs := slices.Index(all, r), slices.Index(all, least)
	return has >= 0 && needs >= 0 && has <= needs
}

// Scope limits what a token may do of what its user may.
type Scope string

// The scopes. Each stands for itself but [Admin], which includes all.
const (
	Read   Scope = "read"   // look
	Say    Scope = "say"    // have devices say, ask or play something
	Urgent Scope = "urgent" // do so in quiet hours
	Tools  Scope = "tools"  // call tools
	Admin  Scope = "admin"  // everything
)

// ParseScopes reads scopes that are separated by commas.
func ParseScopes(list string) (all []Scope, err error) {
	for name := range strings.SplitSeq(list, ",") {
		s := Scope(strings.TrimSpace(name))
		if !slices.Contains([]Scope{Read, Say, Urgent, Tools, Admin}, s) {
			return nil, ErrScopeUnknown
		}
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all, nil
}

// Person identifies the asker: somebody who has logged in, or a program that acts for them.
type Person struct {
	ID     string
	Name   string
	Shown  string
	Role   Role
	Scopes []Scope   // of a token; nil: there is a session
	Proved time.Time // the password was shown last; of a session
	Second bool      // they have a second factor
	Remote string    // address from which they ask; "": not known

	session string // its hash
	id      string // of the token
}

// Is reports whether a person has a role, or one that includes it.
func (p Person) Is(r Role) bool { return atLeast(p.Role, r) }

// Knows reports whether a person may know of a device with its name and address, whose owner has the id owner, "" is nobody:
// owners know all, members their own. Viewers see states and counts alone.
func (p Person) Knows(owner string) bool {
	return p.Is(Owner) || p.Is(Member) && owner != "" && owner == p.ID
}

// Has reports whether a session is the one by which the person asks.
func (p Person) Has(s store.Session) bool { return p.session != "" && p.session == s.Hash }

// Same reports whether both ask by the same session.
func (p Person) Same(q Person) bool { return p.session != "" && p.session == q.session }

// Actor is the person in the audit.
func (p Person) Actor(remote string) Actor {
	via := viaConsole
	if p.Scopes != nil {
		via = viaToken
	}
	return Actor{p.Name, via, remote}
}

// Need states the rights that a request takes.
type Need struct {
	Role  Role  // at least
	Scope Scope // of a token
	Own   bool  // a member may do it to their own objects only, an owner to all
	Fresh bool  // the password was shown in the last ten minutes; tokens cannot do it
	Again bool  // as Fresh, of a session; a token does it by its scope
}

// fresh is how long a password that was shown is good for what needs it again.
const fresh = 10 * time.Minute

// skew is how far a clock may be set back before a password that was shown after it counts no more.
const skew = time.Minute

// May reports whether a person may do what has the need to an object: nil, [ErrForbidden] or [ErrProveAgain]. owner is the
// id of the object's owner, "" is nobody.
func (p Person) May(n Need, owner string, now time.Time) error {
	switch {
	case !atLeast(p.Role, n.Role):
		return ErrForbidden
	case p.Scopes != nil && (n.Fresh || !slices.Contains(p.Scopes, n.Scope) && !slices.Contains(p.Scopes, Admin)):
		return ErrForbidden
	case n.Own && p.Role != Owner && (owner == "" || owner != p.ID):
		return ErrForbidden
	case n.Fresh || n.Again:
		return p.Proven(now)
	}
	return nil
}

// Proven reports whether a person may do what needs the password again: nil, or [ErrProveAgain]. A token stands for itself.
func (p Person) Proven(now time.Time) error {
	if p.Scopes == nil && (now.Sub(p.Proved) > fresh || p.Proved.Sub(now) > skew) {
		return ErrProveAgain
	}
	return nil
}

// CheckName says whether a name can be that of an account, and returns it as it is kept: in small letters.
func CheckName(name string) (string, error) {
	name = strings.ToLower(strings.TrimSpace(name))
	if n := len([]rune(name)); n > 32 || strings.Trim(name, ".") == "" { // to dots alone no path leads
		return "", ErrNameBad
	}
	for _, r := range name {
		if r <= ' ' || strings.ContainsRune(`<>"'&/\,;:`, r) || !unicode.IsPrint(r) {
			return "", ErrNameBad
		}
	}
	return name, nil
}
