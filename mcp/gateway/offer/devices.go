package offer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
)

// Device is a connected device as clients of the gateway see it.
type Device struct {
	ID        string    `json:"id"`
	Name      string    `json:"name,omitempty"`
	SessionID string    `json:"session_id"`
	Language  string    `json:"language"`
	Since     time.Time `json:"since"`
	Tools     int       `json:"tools"` // that are offered to the model
}

// Devices finds the connected devices. Its methods may be called at the same time.
type Devices interface {
	// List returns the devices in a stable order.
	List() []Device
	// Named reports whether a person has given this name to a device, connected or not.
	Named(name string) bool
	// Offers returns the tools that a connected device's model is offered, by the
	// device's id in lower case.
	Offers(id string) ([]router.Offer, bool)
	// Survey returns all tools of a connected device, those too that its model is not offered, and why.
	Survey(id string) ([]router.Listed, bool)
	// Call runs one of them as a call of the model would be, and waits for its
	// true result. invalid says what is wrong with the arguments, if the response
	// tells of that.
	Call(ctx context.Context, id string, call mcp.Call) (response mcp.ActionResponse, invalid string)
	// Calls returns the last tool calls of a device, connected or not, the oldest first.
	Calls(id string) []router.Record
}

// Line is one thing that was said in a conversation.
type Line struct {
	Time time.Time `json:"time"`
	Role string    `json:"role"` // user or assistant
	Text string    `json:"text"`
}

// DeviceList describes what /api/devices and xiaozhi://devices hold.
type DeviceList struct {
	Devices []Device `json:"devices"`
}

// Acts are the functions that act on the conversation of a device from
// outside. A nil one is not offered. They may be called at the same time.
type Acts struct {
	// Say speaks a text, at the next pause, or at once, cutting what is said. It
	// returns when the text has been played or was cut, or that it waits.
	Say func(ctx context.Context, id, text string, now bool) (Said, error)
	// Ask speaks a text and returns what the user says in answer to it, or that it waits.
	Ask func(ctx context.Context, id, text string) (Said, error)
	// Letter tells what has become of what waited, and of which device it is.
	Letter func(ctx context.Context, id string) (device string, said Said, err error)
	// Sleeping lists the known devices that are not connected: what they are to say waits for them. nil: there are none.
	Sleeping func() []Device
	// Listen has the device listen. An error if it does so by a button only.
	Listen func(ctx context.Context, id string) error
	// Abort cuts what the device says now, and reports whether it said anything.
	Abort func(ctx context.Context, id string) (bool, error)
}

// Said tells what has become of a text. Without a fate it was told.
type Said struct {
	Heard  string `json:"heard"`            // of them by the user
	Whole  bool   `json:"whole"`            // that is all of it
	Answer string `json:"answer,omitempty"` // to a question

	Fate    string    `json:"fate,omitempty"` // queued, delivered, expired, refused …: it waits, or waited
	Why     string    `json:"why,omitempty"`  // of refused
	ID      string    `json:"id,omitempty"`   // by which it is found
	Expires time.Time `json:"expires,omitzero"`
}

// Time limits of acts: a long text is spoken for minutes.
const (
	sayTime = 10 * time.Minute
	askTime = 3 * time.Minute
)

// actTools returns the tools that act on the conversations of devices.
func (o Options) actTools() []catalog.Tool {
	var out []catalog.Tool
	add := func(offered bool, name string, limit time.Duration, sleeping func() []Device, act func(ctx context.Context, id, text string, now bool) (any, error)) {
		if !offered || o.Devices == nil {
			return
		}
		out = append(out, catalog.Tool{
			Stream: "device", Name: name, Timeout: limit, Says: true,
			Run: func(ctx context.Context, arguments map[string]any) (any, error) {
				meant, _ := arguments["device_id"].(string)
				text, _ := arguments["text"].(string)
				now, _ := arguments["now"].(bool)
				id, err := pickAny(ctx, o.Devices, sleeping, meant)
				if err != nil {
					return nil, err
				}
				return act(ctx, id, text, now)
			},
		})
	}
	add(o.Acts.Say != nil, "say", sayTime, o.Acts.Sleeping, func(ctx context.Context, id, text string, now bool) (any, error) {
		return o.Acts.Say(ctx, id, text, now)
	})
	add(o.Acts.Ask != nil, "ask", askTime, o.Acts.Sleeping, func(ctx context.Context, id, text string, _ bool) (any, error) {
		said, err := o.Acts.Ask(ctx, id, text)
		if said.Fate == "" {
			return said.Answer, err
		}
		return said, err
	})
	if o.Acts.Letter != nil && o.Devices != nil {
		yes := true
		out = append(out, catalog.Tool{Stream: "device", Name: "letter", Annotations: mcp.Annotations{ReadOnly: &yes}, Run: o.letter})
	}
	add(o.Acts.Listen != nil, "listen", 0, nil, func(ctx context.Context, id, _ string, _ bool) (any, error) {
		return catalog.CallerFrom(ctx).Say("gateway/done"), o.Acts.Listen(ctx, id)
	})
	add(o.Acts.Abort != nil, "abort", 0, nil, func(ctx context.Context, id, _ string, _ bool) (any, error) {
		stopped, err := o.Acts.Abort(ctx, id)
		if !stopped && err == nil {
			return catalog.CallerFrom(ctx).Say("gateway/silent"), nil
		}
		return catalog.CallerFrom(ctx).Say("gateway/done"), err
	})
	return out
}

// letter tells what has become of a text that has waited.
func (o Options) letter(ctx context.Context, arguments map[string]any) (any, error) {
	id, _ := arguments["id"].(string)
	device, said, err := o.Acts.Letter(ctx, id)
	if err == nil && !catalog.CallerFrom(ctx).Reaches(device) {
		return nil, errors.New(catalog.CallerFrom(ctx).Say("gateway/letter-unknown", catalog.Clip(id)))
	}
	return said, err
}

func idsOf(devices []Device) []string {
	var ids []string
	for _, d := range devices {
		ids = append(ids, d.ID)
	}
	return ids
}

// pickAny is pick, also among devices that sleep; nil: there are none. Those that are connected go before.
func pickAny(ctx context.Context, devices Devices, sleeping func() []Device, meant string) (string, error) {
	id, err := pick(ctx, devices, meant)
	if err == nil || sleeping == nil {
		return id, err
	}
	if all := sleeping(); meant != "" || len(devices.List()) == 0 {
		if id, serr := pick(ctx, asleep{devices, all}, meant); serr == nil {
			return id, nil
		}
	}
	return "", err
}

// asleep are devices that are not connected, in the place of those that are.
type asleep struct {
	Devices
	all []Device
}

func (a asleep) List() []Device { return slices.Clone(a.all) }

// pick returns the id of the connected device that is meant: by its MAC address, its name,
// its id or its stream; "" means the only one there is. Nobody else can have the first two, while
// a device may call itself as another one is named: so they go before, whatever the order.
func pick(ctx context.Context, devices Devices, meant string) (string, error) {
	who := catalog.CallerFrom(ctx)
	all := slices.DeleteFunc(devices.List(), func(d Device) bool { return !who.Reaches(d.ID) })
	if meant == "" {
		if len(all) == 1 {
			return all[0].ID, nil
		}
		return "", errors.New(who.Say("gateway/device-unnamed", strings.Join(idsOf(all), ", ")))
	}
	means := []func(d Device, meant string) bool{byAddress, byName}
	if !devices.Named(meant) { // the one that is called so is away
		means = append(means, byID, byStream)
	}
	for _, means := range means {
		fit := slices.DeleteFunc(slices.Clone(all), func(d Device) bool { return !means(d, meant) })
		switch len(fit) {
		case 0:
		case 1:
			return fit[0].ID, nil
		default:
			return "", errors.New(who.Say("gateway/device-unnamed", strings.Join(idsOf(fit), ", ")))
		}
	}
	return "", errors.New(who.Say("gateway/device-unknown", catalog.Clip(meant)))
}

func byAddress(d Device, meant string) bool {
	mac := macIn(strings.TrimPrefix(plain(meant), "device-"))
	return mac != "" && mac == macIn(d.ID)
}

func byName(d Device, meant string) bool {
	return d.Name != "" && strings.EqualFold(d.Name, strings.TrimSpace(meant))
}

func byID(d Device, meant string) bool { return d.ID == plain(meant) }

func byStream(d Device, meant string) bool {
	stream := catalog.StreamOf(d.ID)
	return stream == plain(meant) || stream == "device-"+plain(meant)
}

func plain(meant string) string { return strings.ToLower(strings.TrimSpace(meant)) }

// macIn returns the twelve digits of a MAC address in lower case; "" for anything else.
func macIn(id string) string {
	digits := strings.NewReplacer(":", "", "-", "", ".", "", "_", "", " ", "").Replace(id)
	if len(digits) != 12 || strings.Trim(digits, "0123456789abcdef") != "" {
		return ""
	}
	return digits
}
