package provision

import (
	"bytes"
	_ "embed"
	"net/http"

	"xiaozhi/connection/request"
)

// pageHTML is for a person who opens the OTA address in a browser.
//
//go:embed page.html
var pageHTML string

// view holds the values of the page.
type view struct {
	OTA, Talk string
	Connected int
	Auth      bool
	IPv6      bool // the address is one that devices cannot use
	Loopback  bool // the address is one that only this machine can use
}

// servePage shows a person what to type where.
func (h *Handler) servePage(w http.ResponseWriter, r *http.Request) {
	base := h.o.Requests.BaseURL(r)
	var page bytes.Buffer
	err := h.page.Execute(&page, view{
		OTA: base.String() + request.OTAPath, Talk: request.TalkURL(base), Connected: h.o.Registry.Connected(),
		Auth: h.o.Auth.Enabled, IPv6: !request.DeviceCanUse(base), Loopback: request.IsLoopback(base.Hostname()),
	})
	if err != nil {
		h.o.Log.Error("ota page cannot be made", "err", err)
		request.Refuse(w, http.StatusInternalServerError, "connection/internal")
		return
	}
	request.WriteBody(w, http.StatusOK, "text/html; charset=utf-8", page.Bytes())
}
