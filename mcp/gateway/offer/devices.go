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
	// Offers returns the tools that a connected device's model is offered, by the
	// device's id in lower case.
	Offers(id string) ([]router.Offer, bool)
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

// idsOf returns the ids of the devices that are connected.
func idsOf(devices Devices) []string {
	if devices == nil {
		return nil
	}
	var ids []string
	for _, d := range devices.List() {
		ids = append(ids, d.ID)
	}
	return ids
}

// pick returns the id of the connected device that is meant: by its id, its name or
// its stream; "" means the only one there is.
func pick(ctx context.Context, devices Devices, meant string) (string, error) {
	who := catalog.CallerFrom(ctx)
	all := slices.DeleteFunc(devices.List(), func(d Device) bool { return !who.Reaches(d.ID) })
	if meant == "" {
		if len(all) == 1 {
			return all[0].ID, nil
		}
		var ids []string
		for _, d := range all {
			ids = append(ids, d.ID)
		}
		return "", errors.New(who.Say("gateway/device-unnamed", strings.Join(ids, ", ")))
	}
	wanted := strings.ToLower(strings.TrimSpace(meant))
	for _, d := range all {
		stream := catalog.StreamOf(d.ID)
		if wanted == d.ID || wanted == stream || "device-"+wanted == stream || d.Name != "" && strings.EqualFold(meant, d.Name) {
			return d.ID, nil
		}
	}
	return "", errors.New(who.Say("gateway/device-unknown", catalog.Clip(meant)))
}
