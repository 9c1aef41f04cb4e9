package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/connection/pairing"
	"xiaozhi/internal/roster"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

const devicesUsage = `usage: xiaozhi devices [flags]
       xiaozhi devices [flags] pair CODE | pair ID | rename ID NAME | refuse ID | forget ID | agent ID [NAME]
       xiaozhi devices [flags] keep ID [text=DAYS] [sound=DAYS]

%s
%s

`

// devices is the subcommand. It returns 0 when it was done, 1 when the server did not
// do it, and 2 when it was misused.
func devices(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, rest, code, ok := parseClient("devices", devicesUsage, "known/usage", time.Minute, args, stdout, stderr)
	if !ok {
		return code
	}
	if len(rest) > 0 && rest[0] == "agent" {
		return c.give(ctx, rest[1:], stderr)
	}
	act, order, err := orderOf(rest)
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi devices: %v\n", err)
		return 2
	}
	if err = c.findToken(); err == nil && act == "" {
		err = c.known(ctx)
	} else if err == nil {
		err = c.order(ctx, act, order)
	}
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi devices: %v\n", err)
		return 1
	}
	return 0
}

// give has a device be given the agent that is named, or that of all.
func (c toolsClient) give(ctx context.Context, args []string, stderr io.Writer) int {
	if len(args) < 1 || len(args) > 2 || strings.HasPrefix(args[0], "-") {
		fmt.Fprintf(stderr, "xiaozhi devices: %s\n", message.Both("known/wants", "agent", "ID [NAME]"))
		return 2
	}
	done, order := roster.DeviceAgent{}, roster.DeviceAgent{Agent: strings.Join(args[1:], "")}
	err := c.findToken()
	if err == nil {
		err = c.ask(ctx, http.MethodPut, roster.DevicesPath+"/"+url.PathEscape(args[0])+"/agent", order, &done)
	}
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi devices: %v\n", err)
		return 1
	}
	if !c.asJSON {
		fmt.Fprintln(c.out, message.Both("known/done", plainText(strings.TrimSpace(done.Device+" "+done.Agent))))
	}
	return 0
}

// orderOf reads what is to be done with which device; nothing is to be listed.
func orderOf(args []string) (act string, o pairing.Order, err error) {
	if len(args) == 0 {
		return "", o, nil
	}
	orders := map[string]string{"pair": "CODE / ID", "rename": "ID NAME", "refuse": "ID", "forget": "ID", "keep": "ID text=DAYS sound=DAYS", "agent": "ID [NAME]"}
	wants := orders[args[0]]
	if i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--") }); i >= 0 && wants != "" {
		return "", o, errors.New(message.Both("tool/order", args[i]))
	}
	switch act, args = args[0], args[1:]; {
	case wants == "":
		return "", o, errors.New(wrongWord(act, orders))
	case len(args) == 0 || (act == "rename" || act == "keep") && len(args) < 2 || (act == "refuse" || act == "forget") && len(args) > 1:
		return "", o, errors.New(message.Both("known/wants", act, wants))
	case act == "pair":
		o.Code = strings.Join(args, "") // a code may be typed as 482 913
	case act == "keep":
		if o.Keep = daysOf(args[1:]); o.Keep == nil {
			return "", o, errors.New(message.Both("known/wants", act, wants))
		}
		o.Device = args[0]
	default:
		o.Device, o.Name = args[0], strings.Join(args[1:], " ")
	}
	return act, o, nil
}

// daysOf reads text=DAYS and sound=DAYS, without days where the settings shall say them. nil: that is not what is there.
func daysOf(args []string) pairing.Days {
	days := pairing.Days{}
	for _, arg := range args {
		of, written, ok := strings.Cut(arg, "=")
		if _, twice := days[of]; !ok || twice || of != pairing.Text && of != pairing.Sound {
			return nil
		}
		if days[of] = nil; written == "" {
			continue
		}
		n, err := strconv.Atoi(written)
		if err != nil {
			return nil
		}
		days[of] = &n
	}
	return days
}

// kept says for how many days what a device has said is kept, where it has days of its own.
func kept(days pairing.Days) (parts []string) {
	for _, of := range []string{pairing.Text, pairing.Sound} {
		switch n := days[of]; {
		case n == nil:
		case *n == 0:
			parts = append(parts, message.Both("known/keep-ever", of))
		default:
			parts = append(parts, message.Both("known/keep", of, *n))
		}
	}
	return parts
}

// known lists the devices.
func (c toolsClient) known(ctx context.Context) error {
	var list pairing.List
	if err := c.ask(ctx, http.MethodGet, pairing.Path, nil, &list); err != nil || c.asJSON {
		return err
	}
	fmt.Fprintln(c.out, message.Both("known/mode", list.Mode))
	if len(list.Devices) == 0 {
		fmt.Fprintln(c.out, message.Both("known/none"))
	}
	for _, d := range list.Devices {
		line := []string{text.Line(d.ID), d.State}
		for _, part := range []string{d.Name, d.Board, d.Firmware} {
			if part = text.Line(part); part != "" { // what a device tells of itself
				line = append(line, part)
			}
		}
		line = append(line, d.Seen.Local().Format(time.DateTime))
		if d.Agent != "" {
			line = append(line, message.Both("known/agent", d.Agent))
		}
		line = append(line, kept(d.Keep)...)
		if d.Connected {
			line = append(line, message.Both("known/connected"))
		}
		if d.Code != "" {
			line = append(line, message.Both("known/code", d.Code, d.Remote))
		}
		fmt.Fprintln(c.out, plainText(strings.Join(line, "  ")))
	}
	return nil
}

// order has the server do something with a device.
func (c toolsClient) order(ctx context.Context, act string, o pairing.Order) error {
	var done pairing.Done
	if err := c.ask(ctx, http.MethodPost, pairing.Path+"/"+act, o, &done); err != nil || c.asJSON {
		return err
	}
	fmt.Fprintln(c.out, message.Both("known/done", plainText(done.Device)))
	for _, file := range done.Left {
		fmt.Fprintln(c.out, message.Both("known/left", plainText(file)))
	}
	return nil
}
