package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/contact"
)

// CheckAddresses says by which addresses devices reach the server. found are those of this machine, as host:port; public
// is that of the settings, "": none.
func CheckAddresses(found []string, public string) (all []Finding) {
	if public != "" {
		all = append(all, ok(Addresses, "doctor/told-public", public))
	} else {
		all = append(all, ok(Addresses, "doctor/told-asked"))
	}
	usable, port := false, "8000"
	for i, address := range found {
		host, own, err := net.SplitHostPort(address)
		ip, _ := netip.ParseAddr(host)
		if i == 0 && err == nil {
			port = own
		}
		switch {
		case err != nil || ip.IsLoopback():
		case isContainer(ip):
			all = append(all, bad(Addresses, Warning, contact.Say("doctor/address-container", address), contact.Say("doctor/address-container-do")))
		default:
			usable = true
			all = append(all, ok(Addresses, "doctor/address", address))
		}
	}
	if !usable && public == "" {
		all = append(all, bad(Addresses, Problem, contact.Say("doctor/address-none"), contact.Say("doctor/address-none-do", port)))
	}
	return all
}

// isContainer reports whether an address is likely one that Docker gives to its containers, and to bridges of its own.
func isContainer(ip netip.Addr) bool {
	return netip.MustParsePrefix("172.17.0.0/16").Contains(ip) || netip.MustParsePrefix("172.18.0.0/15").Contains(ip)
}

const dialTime = 2 * time.Second

// CheckPorts tries whether addresses of this machine are listened at.
func CheckPorts(ctx context.Context, addresses []string) []Finding {
	all := make([]Finding, len(addresses))
	var wg sync.WaitGroup
	for i, address := range addresses {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, dialTime)
			defer cancel()
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", dialable(address))
			if err != nil {
				all[i] = bad(Ports, Problem, contact.Say("doctor/port-closed", address, plain(err)), contact.Say("doctor/port-closed-do"))
				return
			}
			conn.Close()
			all[i] = ok(Ports, "doctor/port-open", address)
		})
	}
	wg.Wait()
	return all
}

// Listened says whether an address can be listened at while no server runs.
func Listened(address string, err error) Finding {
	if err != nil {
		return bad(Ports, Problem, contact.Say("doctor/port-taken", address, contact.Line(plain(err))), contact.Say("doctor/port-taken-do"))
	}
	return ok(Ports, "doctor/port-free", address)
}

// Settings says whether the settings can be used.
func Settings(err error) Finding {
	if err != nil {
		return bad(Program, Problem, contact.Line(plain(err)), contact.Say("doctor/settings-wrong-do"))
	}
	return ok(Program, "doctor/settings-right")
}

// dialable is an address to listen at as one to dial.
func dialable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// Time compares the clock with that of a service.
type Time struct {
	Off     time.Duration // by which the clock of a service is ahead of ours
	Service string        // whose; "": none was asked yet
	At      time.Time     // when it was asked
	Zone    *time.Location
}

// maxOff is by how much clocks may differ: signatures and certificates bear more.
const maxOff = time.Minute

// CheckClock says whether the clock is right, and which time devices show.
func CheckClock(t Time, now time.Time) (all []Finding) {
	name, offset := now.In(t.Zone).Zone()
	all = append(all, ok(Clock, "doctor/zone", t.Zone.String(), now.In(t.Zone).Format("2006-01-02 15:04:05"), fmt.Sprintf("%s, UTC%+.3g", name, float64(offset)/3600)))
	switch {
	case t.Service == "":
		all = append(all, ok(Clock, "doctor/clock-unknown"))
	case t.Off.Abs() > maxOff:
		all = append(all, bad(Clock, Problem, contact.Say("doctor/clock-off", t.Off.Abs().Round(time.Second), t.Service), contact.Say("doctor/clock-off-do")))
	default:
		all = append(all, ok(Clock, "doctor/clock-right", t.Service))
	}
	return all
}

// Bounds of the room that a disk should have.
const (
	littleRoom = 1 << 30
	noRoom     = 100 << 20
)

// CheckDisk says whether the data folder can be written, and how much room there is. network names the network file
// system on which it lies; "": none is known.
func CheckDisk(folder, network string) (all []Finding) {
	if network != "" {
		all = append(all, bad(Disk, Warning, contact.Say("doctor/disk-network", folder, network), contact.Say("doctor/disk-network-do")))
	}
	file, err := os.CreateTemp(folder, ".doctor-*")
	if errors.Is(err, fs.ErrNotExist) {
		return append(all, bad(Disk, Warning, contact.Say("doctor/disk-none", folder), contact.Say("doctor/disk-none-do")))
	}
	if err == nil {
		_, err = file.WriteString("x")
		err = errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	if err != nil {
		return append(all, bad(Disk, Problem, contact.Say("doctor/disk-closed", folder, plain(err)), contact.Say("doctor/disk-closed-do")))
	}
	free, known := freeSpace(folder)
	mib := free >> 20
	switch {
	case !known:
		return append(all, ok(Disk, "doctor/disk-writable", folder))
	case free < noRoom:
		return append(all, bad(Disk, Problem, contact.Say("doctor/disk-full", folder, mib), contact.Say("doctor/disk-full-do")))
	case free < littleRoom:
		return append(all, bad(Disk, Warning, contact.Say("doctor/disk-full", folder, mib), contact.Say("doctor/disk-full-do")))
	}
	return append(all, ok(Disk, "doctor/disk-room", folder, mib>>10))
}

// CheckSpeed says whether the server does what is due in time. most is from when on devices are turned away; 0: never.
func CheckSpeed(lag, most time.Duration, ready bool) (all []Finding) {
	if !ready {
		all = append(all, bad(Speed, Warning, contact.Say("doctor/loading"), contact.Say("doctor/loading-do")))
	}
	const noticed = 10 * time.Millisecond
	switch lag = lag.Round(time.Millisecond); {
	case most > 0 && lag > most:
		return append(all, bad(Speed, Problem, contact.Say("doctor/late", lag), contact.Say("doctor/late-do")))
	case lag > noticed:
		return append(all, bad(Speed, Warning, contact.Say("doctor/late", lag), contact.Say("doctor/late-do")))
	}
	return append(all, ok(Speed, "doctor/in-time", lag))
}

// Chain is a chain of services.
type Chain struct {
	Role    string
	Agents  []string // that have it for themselves; none: it is that of all
	Members []Member
}

// Member is a member of a chain.
type Member struct {
	Name  string
	State Level // ok: it can be asked; warning: it is about to be tried again; problem: it fails
	Left  bool  // it could not be made, in place of the state
	Fault any   // a sentence or plain text: why it fails or is left out
}

// CheckServices says which services fail. One that is left out is only worth a word where others answer.
func CheckServices(chains []Chain) (all []Finding) {
	for _, c := range chains {
		name := c.Role
		if len(c.Agents) > 0 {
			name += " (" + strings.Join(c.Agents, ", ") + ")"
		}
		var good []string
		for _, m := range c.Members {
			switch {
			case m.Left:
				all = append(all, ok(Services, "doctor/service-left", name, m.Name, m.Fault))
			case m.State == OK:
				good = append(good, m.Name)
			default:
				all = append(all, bad(Services, Warning, contact.Say("doctor/service-fails", name, m.Name, m.Fault), contact.Say("doctor/service-fails-do", m.Name)))
			}
		}
		switch {
		case len(good) > 0:
			all = append(all, ok(Services, "doctor/service-answers", name, strings.Join(good, ", ")))
		case c.Role == "asr" || c.Role == "llm" || c.Role == "tts":
			all = append(all, bad(Services, Problem, contact.Say("doctor/service-none", name), contact.Say("doctor/service-none-do", c.Role)))
		}
	}
	return all
}

// CheckStore says what is wrong with what is kept.
func CheckStore(kept bool, troubles []contact.Why) (all []Finding) {
	if !kept {
		return []Finding{bad(Store, Warning, contact.Say("doctor/store-none"), contact.Say("doctor/store-none-do"))}
	}
	for _, t := range troubles {
		all = append(all, bad(Store, Problem, t, contact.Say("doctor/store-do")))
	}
	if len(all) == 0 {
		all = append(all, ok(Store, "doctor/store-well"))
	}
	return all
}

// CheckSafety passes on what is dangerous in how the server was started.
func CheckSafety(dangers []contact.Why) (all []Finding) {
	for _, d := range dangers {
		all = append(all, bad(Safety, Warning, d, contact.Say("doctor/safety-do")))
	}
	return all
}

// CheckProgram says which program it is.
func CheckProgram(version string) []Finding {
	return []Finding{ok(Program, "doctor/version", version, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU())}
}

// plain is an error as one line.
func plain(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
