package tools

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/external/oauth"
)

// loginState is the page of a login to a server that goes on.
type loginState struct {
	Name string // "": the browser has come back from a login that failed
	Link string // of the page of the authorization server
	Host string // of the link
	Back bool   // the browser finds back by itself
	Came bool   // it has come back
}

// logins are the pages by which people log in to servers of tools.
type logins struct{ *Page }

// begin shows the link at which a person allows this server to use another one.
func (p logins) begin(w http.ResponseWriter, r *http.Request, f *ui.Form, name string) {
	redirect, finds := p.wayBack(r)
	link, err := p.from.Login(r.Context(), name, redirect)
	p.door.Did(r, "tool-server.login", name, err)
	if err != nil {
		f.Wrong("", p.why(r, err))
		p.showServers(w, r, f, nil)
		return
	}
	p.showOne(w, r, nil, loginState{Name: name, Link: link, Host: hostOf(link), Back: finds})
}

func (p logins) showOne(w http.ResponseWriter, r *http.Request, f *ui.Form, s loginState) {
	p.site.Show(w, r, "tools-server-login", ui.Content{Title: p.site.Say(r, "tools/login"), Data: s, Form: f})
}

func hostOf(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return u.Host
}

// wayBack is the address to which a browser is led after a login. Authorization servers lead to https and to the person's
// own machine only: finds is false if that is not how the person has come here, so that the address is pasted.
func (p logins) wayBack(r *http.Request) (redirect string, finds bool) {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	ip, err := netip.ParseAddr(host)
	switch local := host == "localhost" || err == nil && ip.IsLoopback(); {
	case p.door.Secure(r):
		return "https://" + r.Host + loginPath, true
	case local:
		return "http://" + r.Host + loginPath, true
	case port == "":
		return "http://127.0.0.1" + loginPath, false
	}
	return "http://127.0.0.1:" + port + loginPath, false
}

// back serves the address to which a browser is led after a login. It changes nothing: what came is in the form, and the
// person sends that.
func (p logins) back(w http.ResponseWriter, r *http.Request) {
	s, f := loginState{}, (*ui.Form)(nil)
	if q := r.URL.Query(); q.Get("state") != "" {
		s.Came, f = true, ui.Filled("address", loginPath+"?"+q.Encode())
	}
	p.showOne(w, r, f, s)
}

// paste takes the address that the browser was led to, where it did not find back.
func (p logins) paste(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	u, err := url.Parse(f.Get("address"))
	if err != nil || u.Query().Get("state") == "" {
		f.Wrong("address", p.site.Say(r, "tools/login-no-address"))
		p.showOne(w, r, f, loginState{})
		return
	}
	p.finish(w, r, f, u.Query())
}

func (p logins) finish(w http.ResponseWriter, r *http.Request, f *ui.Form, answer url.Values) {
	if err := p.pace.Often(access.PersonOf(r).ID, "servers"); err != nil {
		p.site.Explain(w, r, f, "", err) // the reason is for everybody
		p.showOne(w, r, f, loginState{})
		return
	}
	name, err := p.from.LoggedIn(r.Context(), answer)
	p.door.Did(r, "tool-server.logged-in", name, err)
	if err != nil {
		f.Wrong("", p.why(r, err))
		p.showOne(w, r, f, loginState{})
		return
	}
	p.site.Done(w, r, serversPath, "tools/logged-in", name)
}

// out forgets what a server has granted.
func (p logins) out(w http.ResponseWriter, r *http.Request, f *ui.Form, name string) {
	err := p.from.Logout(r.Context(), name)
	p.door.Did(r, "tool-server.logout", name, err)
	if err != nil {
		f.Wrong("", p.why(r, err))
		p.showServers(w, r, f, nil)
		return
	}
	p.site.Done(w, r, serversPath, "tools/logged-out", name)
}

// maxWhy is how much of the words of an authorization server is shown, in bytes.
const maxWhy = 400

// why says why a login did not begin, or did not end well.
func (p logins) why(r *http.Request, err error) string {
	for known, id := range map[error]string{
		mcp.ErrClosed: "tools/no-server", external.ErrNoLogin: "tools/login-none", oauth.ErrUnasked: "tools/login-unasked", oauth.ErrState: "tools/login-unknown",
	} {
		if errors.Is(err, known) {
			return p.site.Say(r, id)
		}
	}
	return p.site.Say(r, "tools/login-failed", text.Cut(err.Error(), maxWhy))
}
