package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/service"
)

// askTime is how long a running server is waited for.
const askTime = 3 * time.Second

// list shows the chains of the running server with their states, or those of the settings if none runs.
func (t *trier) list(ctx context.Context) error {
	states, err := t.running(ctx)
	switch {
	case err == nil && t.f.json:
		return nil
	case err == nil:
		fmt.Fprintf(t.out, "%s\n", message.Both("services/running", t.server.server))
		return t.states(states)
	case t.f.server != "" || t.f.json:
		return err
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		fmt.Fprintf(t.out, "%s\n", message.Both("services/not-running", t.server.server))
	} else {
		fmt.Fprintf(t.out, "%s: %v\n", message.Both("services/no-states", t.server.server), err)
	}
	return t.settings(ctx)
}

// running asks the server of the settings, or the one that is named, for its states.
func (t *trier) running(ctx context.Context) (states engines.States, err error) {
	noToken := t.server.findToken()
	err = t.server.ask(ctx, http.MethodGet, engines.StatesPath, nil, &states)
	if err != nil && noToken != nil && !errors.Is(err, syscall.ECONNREFUSED) { // a server that has never run has no token either
		return states, noToken
	}
	return states, err
}

// serverOf returns the address at which the server of some settings is reached from this machine.
func serverOf(cfg *config.Config) string {
	for _, address := range cfg.Server.Listen {
		host, port, err := net.SplitHostPort(address)
		if err != nil || port == "0" {
			continue
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		return "http://" + net.JoinHostPort(host, port)
	}
	return "http://127.0.0.1:8000"
}

// states shows what a running server tells.
func (t *trier) states(s engines.States) error {
	w := tabwriter.NewWriter(t.out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "\t\t\t%s\t\n", message.Both("services/last-result"))
	var faults []string
	for _, c := range s.Chains {
		if len(c.Agents) > 0 {
			fmt.Fprintf(w, "%s\n", message.Both("services/of-agents", plainText(strings.Join(c.Agents, ", "))))
		}
		for _, m := range c.Members {
			what := m.About
			switch {
			case m.Condition == engines.LeftOut:
				what = m.Fault
			case m.Fault != "":
				faults = append(faults, fmt.Sprintf("%s %s: %s: %s", c.Role, m.Name, message.Both("services/last-failure", clock(m.Failed)), m.Fault))
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.Role, plainText(m.Name), condition(m), lastResult(m), plainText(what))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range faults {
		fmt.Fprintln(t.out, plainText(f))
	}
	return nil
}

// condition says how a member is.
func condition(m engines.MemberState) string {
	switch m.Condition {
	case chain.Closed:
		return message.Both("services/closed")
	case chain.Open:
		return message.Both("services/open", m.Failures, (m.Rest+999)/1000)
	case chain.HalfOpen:
		return message.Both("services/half-open")
	}
	return message.Both("app/left-out")
}

// lastResult says how long the last result of a member took, and when that was.
func lastResult(m engines.MemberState) string {
	if m.First == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f ms, %s", m.First, clock(m.Given))
}

// clock shows a time of today, or with its day.
func clock(at time.Time) string {
	at = at.Local()
	if time.Since(at) < 12*time.Hour {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// settings shows the chains of the settings and what is left out of them.
func (t *trier) settings(ctx context.Context) error {
	w := tabwriter.NewWriter(t.out, 0, 4, 2, ' ', 0)
	for _, r := range []service.Role{service.ASR, service.LLM, service.TTS, service.Vision, service.Realtime, service.Embed} {
		for _, m := range t.s.Chain(ctx, r) {
			state, what := "ok", m.What
			if m.Err != nil {
				state, what = "-", message.Both("app/left-out")+": "+m.Err.Error()
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r, m.Name, state, what)
		}
	}
	return w.Flush()
}
