package fleet

import (
	"errors"
	"slices"
	"strings"

	"xiaozhi/connection/identity"
)

// Errors of an address.
var (
	ErrNobody  = errors.New("no device is called so")
	ErrSeveral = errors.New("several devices are called so")
)

// The parts of addresses that mean several devices.
const (
	Everybody   = "all"
	groupPrefix = "group:"
	agentPrefix = "agent:"
)

// Meant returns the known devices that an address means: an id, a name, group:NAME, agent:NAME, or all. A group is what the
// settings of devices name so, else all devices of that agent. Pages of browsers are meant by their id alone. The error is [ErrNobody] or
// [ErrSeveral].
func Meant(to string, all []Device, groups func(id string) []string) ([]Device, error) {
	to = strings.TrimSpace(to)
	of := func(is func(d Device) bool) []Device {
		return slices.DeleteFunc(slices.Clone(all), func(d Device) bool { return !d.Known || d.Browser || !is(d) })
	}
	agent := func(name string) []Device {
		return of(func(d Device) bool { return name != "" && strings.EqualFold(d.Agent, name) })
	}
	var meant []Device
	if name, is := strings.CutPrefix(to, groupPrefix); is {
		meant = of(func(d Device) bool {
			return slices.ContainsFunc(groups(d.ID), func(group string) bool { return strings.EqualFold(group, name) })
		})
		if len(meant) == 0 {
			meant = agent(name)
		}
	} else if name, is := strings.CutPrefix(to, agentPrefix); is {
		meant = agent(name)
	} else if strings.EqualFold(to, Everybody) {
		meant = of(func(Device) bool { return true })
	} else {
		return one(to, all)
	}
	if len(meant) == 0 {
		return nil, ErrNobody
	}
	return meant, nil
}

// one returns the known device of an id or a name.
func one(to string, all []Device) ([]Device, error) {
	if to == "" {
		return nil, ErrNobody
	}
	id := identity.ParseID(to)
	if i := slices.IndexFunc(all, func(d Device) bool { return d.Known && d.ID == id }); i >= 0 {
		return all[i : i+1 : i+1], nil
	}
	named := slices.DeleteFunc(slices.Clone(all), func(d Device) bool { return !d.Known || d.Browser || !strings.EqualFold(d.Name, to) })
	switch len(named) {
	case 0:
		return nil, ErrNobody
	case 1:
		return named, nil
	}
	return nil, ErrSeveral
}
