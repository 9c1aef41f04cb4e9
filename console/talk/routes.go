package talk

import (
	"encoding/json"
	"net/http"
	"strings"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/text/message"
)

// TicketPath gives tickets.
const TicketPath = "/console/talk/ticket"

// Order is the body of POST /console/talk/ticket.
type Order struct {
	Browser string `json:"browser"` // what the browser calls itself, the same each time
	Keep    *bool  `json:"keep"`    // false: nothing of the talk is kept; missing: it is
}

// Ticket is the answer to POST /console/talk/ticket.
type Ticket struct {
	Ticket string `json:"ticket"` // good once, for a minute, for the page that has asked
	Device string `json:"device"` // id of the browser among the devices
}

// Replier answers requests; an access.Guard does.
type Replier interface {
	Body(w http.ResponseWriter, r *http.Request) (body []byte, ok bool)
	Fail(w http.ResponseWriter, r *http.Request, err error)
}

// Routes are those of tickets.
func (d *Desk) Routes(reply Replier) []access.Route {
	return []access.Route{{Pattern: "POST " + TicketPath, For: access.People, Need: need, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.serveTicket(w, r, reply)
	})}}
}

func (d *Desk) serveTicket(w http.ResponseWriter, r *http.Request, reply Replier) {
	p := access.PersonOf(r)
	if !mayTalk(p) { // a program has no browser
		reply.Fail(w, r, account.ErrForbidden)
		return
	}
	body, ok := reply.Body(w, r)
	if !ok {
		return
	}
	var order Order
	if err := json.Unmarshal(body, &order); err != nil || !isBrowserID(order.Browser) {
		access.Refuse(w, http.StatusBadRequest, "talk/browser", message.Both("talk/browser"))
		return
	}
	guest, err := d.o.Page(r, p, deviceID(p, order.Browser))
	if err != nil {
		reply.Fail(w, r, err)
		return
	}
	guest.Private = order.Keep != nil && !*order.Keep
	access.Answer(w, http.StatusOK, Ticket{d.issue(p, r.Header.Get("Origin"), guest), guest.ID})
}

// isBrowserID reports whether a browser may call itself so.
func isBrowserID(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return len(id) >= 16 && len(id) <= maxBrowser && strings.Trim(id, letters) == ""
}
