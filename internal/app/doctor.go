package app

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/connection/identity"
	"xiaozhi/connection/request"
	"xiaozhi/internal/access"
	"xiaozhi/internal/admintoken"
	"xiaozhi/internal/config"
	"xiaozhi/internal/contact"
	"xiaozhi/internal/doctor"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/version"
	"xiaozhi/providers/catalog"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// dates hold what is known of the clocks of services. Its methods may be called at the same time.
type dates struct {
	mu   sync.Mutex
	last doctor.Time
}

func (d *dates) note(host string, ahead time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = doctor.Time{Off: ahead, Service: host, At: time.Now()}
}

func (d *dates) get(zone *time.Location) doctor.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.last
	t.Zone = zone
	return t
}

// addressesOf lists where listeners listen.
func addressesOf(listeners []net.Listener) (all []string) {
	for _, l := range listeners {
		all = append(all, l.Addr().String())
	}
	return all
}

// callers returns who has asked last where to connect, the newest first.
func (s *seen) callers() (lines []string) {
	for _, c := range s.devices.Log.Callers(lastCallers) {
		lines = append(lines, strings.Join([]string{c.At.Format(time.TimeOnly), c.From, cmp.Or(c.Device, "-"), c.Board}, "  "))
	}
	return lines
}

const lastCallers = 5

// reached lists the addresses by which this machine is reached at those where the server listens.
func (s *seen) reached() (all []string) {
	for _, address := range s.open {
		if tcp, err := net.ResolveTCPAddr("tcp", address); err == nil {
			all = append(all, reachable(tcp)...)
		}
	}
	return all
}

// examiner looks at the program for its doctor.
type examiner struct{ *App }

// marked is the header that marks what the server asks itself, with the code of a link.
const marked = "Xiaozhi-Doctor"

// asksItself reports whether a request is one of the server's own.
func (a examiner) asksItself(r *http.Request) bool {
	_, ok := a.seen.doctor.Links().Get(r.Header.Get(marked))
	return ok
}

// examine looks at the server.
func (a examiner) examine(ctx context.Context, links *doctor.Links) ([]doctor.Finding, contact.Around) {
	cfg := a.cfg
	code := strings.TrimPrefix(links.Mark(), doctor.PhonePath)
	found, around := doctor.Outside{
		URL: cfg.Server.PublicURL, TrustProxy: cfg.Server.TrustProxy, Talk: request.TalkPath, Health: "/healthz",
		Knock: links.Knock, Header: http.Header{marked: {code}}, Now: time.Now,
	}.Check(ctx)
	if around.Port == "" && len(a.seen.open) > 0 {
		_, around.Port, _ = net.SplitHostPort(a.seen.open[0])
	}
	network := ""
	var troubles []contact.Why
	if a.stored != nil {
		health := a.stored.Health()
		network = health.Network
		for _, t := range health.Trouble {
			troubles = append(troubles, contact.Say(troubleIDs()[t]))
		}
		troubles = append(troubles, saidOf(a.recorders.trouble())...)
	}
	return slices.Concat(found,
		doctor.CheckAddresses(a.seen.reached(), cfg.Server.PublicURL),
		doctor.CheckPorts(ctx, slices.Concat(a.seen.open, a.seen.safe)),
		a.web.https.examined(time.Now()),
		doctor.CheckClock(a.seen.dates.get(a.forces.zone.Location()), time.Now()),
		doctor.CheckDisk(a.options.Data, network),
		doctor.CheckSpeed(a.load.Lag(), cfg.Server.MaxLateness, a.life.ready.Load()),
		doctor.CheckServices(checked(condition{a.App}.chains())),
		doctor.CheckStore(a.stored != nil, troubles),
		doctor.CheckSafety(saidOf(a.seen.dangers)),
		a.settingsFindings(),
		doctor.CheckProgram(version.Number()),
	), around
}

// examined judges the certificate that browsers are shown.
func (h *https) examined(now time.Time) []doctor.Finding {
	if h.source == nil {
		return doctor.CheckHTTPS(nil, false, now)
	}
	return doctor.CheckHTTPS(h.source.Leaf(), h.source.Authority() != nil, now)
}

// saidOf are lines in both languages as sentences.
func saidOf(lines []string) (all []contact.Why) {
	for _, line := range lines {
		all = append(all, contact.Line(line))
	}
	return all
}

// checked says how the members of chains are.
func checked(states engines.States) (all []doctor.Chain) {
	for _, c := range states.Chains {
		one := doctor.Chain{Role: string(c.Role), Agents: c.Agents}
		for _, m := range c.Members {
			member := doctor.Member{Name: m.Name, State: doctor.OK, Left: m.Condition == engines.LeftOut, Fault: faultOf(m.Cause, m.Free)}
			switch m.Condition {
			case chain.Open:
				member.State, member.Fault = doctor.Problem, contact.Say("doctor/service-resting", m.Failures, (m.Rest+999)/1000, member.Fault)
			case chain.HalfOpen:
				member.State = doctor.Warning
			}
			one.Members = append(one.Members, member)
		}
		all = append(all, one)
	}
	return all
}

// faultOf says what a failure is due to: a sentence, or what the service has said.
func faultOf(err error, free bool) any {
	if err == nil {
		return ""
	}
	cause := transport.CauseOf(err, free)
	if cause == "" {
		return contact.Line(engines.Readable(err))
	}
	return contact.Say(string(cause))
}

// routes are those of the doctor.
func (a examiner) routes(owner func(ctx context.Context, id string) (string, error)) []access.Route {
	api := &doctor.API{
		Doctor: a.seen.doctor, Guard: a.web.guard, Owner: owner, Device: identity.ParseID, Remote: a.web.from, Bundle: a.bundle,
	}
	if a.web.console != nil {
		api.Works = a.web.console.Phone
	}
	return api.Routes()
}

// wordsInLog finds arguments of tools in lines of the log: they may hold what was said.
var wordsInLog = regexp.MustCompile(`\b(arguments|question|guess)=("(?:[^"\\]|\\.)*"|\S+)`)

// bundle collects what goes to somebody who helps.
func (a examiner) bundle(found doctor.Report) doctor.Bundle {
	cfg := a.crew.settings()
	secrets := slices.Concat(a.cfg.Secrets(), cfg.Secrets(), a.secretFiles())
	return doctor.Bundle{
		Version: version.Number(), Settings: cfg.Redacted(), Warnings: a.seen.dangers, Log: wordsInLog.ReplaceAllString(a.seen.tail.Text(), "$1="+contact.Dots),
		Report: found, Contacts: a.seen.devices.Log, Secrets: secrets, Now: time.Now(),
	}
}

// secretFiles are the secrets of the data folder that are texts.
func (a examiner) secretFiles() (all []string) {
	for _, name := range []string{keyFile, filepath.Base(admintoken.Path(a.options.Data))} {
		if text, err := os.ReadFile(filepath.Join(a.options.Data, name)); err == nil {
			all = append(all, strings.TrimSpace(string(text)))
		}
	}
	return all
}

// CheckSettings looks at what the settings and this machine tell while no server runs.
func CheckSettings(ctx context.Context, cfg *config.Config, data string) doctor.Report {
	begun := time.Now()
	found := []doctor.Finding{doctor.Settings(nil)}
	found = append(found, checkListen(ctx, cfg.Server.Listen)...)
	outside, _ := doctor.Outside{URL: cfg.Server.PublicURL, TrustProxy: cfg.Server.TrustProxy, Talk: request.TalkPath, Health: "/healthz", Now: time.Now}.Check(ctx)
	services := engines.OpenServices(cfg, slog.New(slog.DiscardHandler))
	defer services.Close()
	var chains []doctor.Chain
	for _, r := range []service.Role{service.ASR, service.LLM, service.TTS} {
		c := doctor.Chain{Role: string(r)}
		for _, m := range services.Chain(ctx, r) {
			c.Members = append(c.Members, doctor.Member{Name: m.Name, State: doctor.OK, Left: m.Err != nil, Fault: faultOf(m.Err, engines.IsFree(cfg, catalog.Kinds(), m.Name))})
		}
		chains = append(chains, c)
	}
	found = slices.Concat(found, outside,
		doctor.CheckClock(doctor.Time{Zone: cfg.Server.Zone()}, begun),
		doctor.CheckDisk(data, ""),
		doctor.CheckServices(chains),
		doctor.CheckSafety(saidOf(warnings(cfg, os.Geteuid(), nil))),
		doctor.CheckProgram(version.Number()),
	)
	return doctor.ReportOf(begun, found)
}

// checkListen says whether the addresses of the settings can be opened, and how they are reached.
func checkListen(ctx context.Context, addresses []string) (all []doctor.Finding) {
	var open []string
	for _, address := range addresses {
		listeners, err := listenAll(ctx, []string{address})
		all = append(all, doctor.Listened(address, err))
		if err == nil {
			open = append(open, reachable(listeners[0].Addr())...)
			listeners[0].Close()
		}
	}
	return append(all, doctor.CheckAddresses(open, "")...)
}
