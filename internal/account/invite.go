package account

import (
	"context"
	"errors"
	"slices"
	"time"

	"xiaozhi/store"
)

// inviteTime is how long an invitation is good.
const inviteTime = 48 * time.Hour

// Invite returns a secret by which somebody makes an account of a role, once, within two days. byID is the account of who
// invites, if there is one: the invitation ends with its rights.
func (s *Service) Invite(ctx context.Context, by Actor, byID string, role Role) (secret string, err error) {
	if _, err := ParseRole(string(role)); err != nil {
		return "", err
	}
	secret, kept := newSecret("")
	err = s.db.Invites.Add(ctx, store.Invite{Hash: kept, Role: role, ByID: byID, EndsAt: s.now().Add(inviteTime)})
	s.did(ctx, by, "invite", string(role)+" "+InvitationID(secret), err)
	return secret, err
}

// InvitationID tells an invitation from others, by its secret. It lets nobody in.
func InvitationID(secret string) string { return keep(secret)[:inviteID] }

// Invitation is one that nobody has followed yet.
type Invitation struct {
	ID   string // as of [InvitationID]
	Role Role
	By   string // name of an account; "": nobody's, such as of the command
	Ends time.Time
}

// inviteID is how many characters of the hash of an invitation tell it from others.
const inviteID = 16

// Invitations lists those that nobody has followed yet, the one that ends first first.
func (s *Service) Invitations(ctx context.Context) (all []Invitation, err error) {
	open, err := s.db.Invites.List(ctx)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	people, err := s.db.Users.List(ctx)
	names := map[string]string{}
	for _, u := range people {
		names[u.ID] = u.Name
	}
	for _, i := range open {
		all = append(all, Invitation{i.Hash[:inviteID], i.Role, names[i.ByID], i.EndsAt})
	}
	return all, err
}

// Withdraw ends the invitation of an id.
func (s *Service) Withdraw(ctx context.Context, by Actor, id string) error {
	open, err := s.db.Invites.List(ctx)
	if err != nil {
		return err
	}
	err = ErrNoInvite
	if i := slices.IndexFunc(open, func(i store.Invite) bool { return i.Hash[:inviteID] == id }); i >= 0 {
		err = orReason(s.db.Invites.End(ctx, open[i].Hash), store.ErrNotFound, ErrNoInvite)
	}
	s.did(ctx, by, "invite.withdraw", id, err)
	return err
}

// Accept makes the account that an invitation is for. The invitation is used up when all else is right.
func (s *Service) Accept(ctx context.Context, secret string, n NewUser, from Origin) error {
	n.Role = Viewer // until the invitation says more
	err := s.guesses.guess(inviteName, from.Remote, func() (bool, error) {
		_, err := s.db.Invites.Open(ctx, keep(secret))
		return err == nil, without(err, store.ErrNotFound)
	})
	who := ""
	if errors.Is(err, ErrBadLogin) {
		err = ErrNoInvite
	} else if err == nil {
		who, err = n.Name, s.accept(ctx, secret, n)
	}
	s.did(ctx, Actor{who, viaConsole, from.Remote.String()}, "invite.accept", who, err)
	return err
}

// without returns an error unless it is the one that is left out.
func without(err, out error) error {
	if errors.Is(err, out) {
		return nil
	}
	return err
}

func (s *Service) accept(ctx context.Context, secret string, n NewUser) error {
	if n.Password == "" {
		return ErrPasswordShort
	}
	u, err := s.prepare(ctx, n)
	if err != nil {
		return err
	}
	switch _, err := s.db.Users.Named(ctx, u.Name); {
	case err == nil:
		return ErrNameTaken
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	i, err := s.db.Invites.Take(ctx, keep(secret))
	if err != nil {
		return orReason(err, store.ErrNotFound, ErrNoInvite)
	}
	u.Role = i.Role
	return orReason(s.db.Users.Add(ctx, u), store.ErrExists, ErrNameTaken)
}
