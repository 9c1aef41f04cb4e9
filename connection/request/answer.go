package request

import (
	"net/http"
	"strconv"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/rawjson"
)

// AllowBrowsers lets test pages from anywhere ask, also from a public page to
// a private network.
func AllowBrowsers(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	if r.Method != http.MethodOptions {
		return
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Content-Type, Authorization, Device-Id, Client-Id, Activation-Version, Serial-Number, Accept-Language, User-Agent")
	h.Set("Access-Control-Max-Age", "86400")
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
}

// WriteJSON answers with 200 and a Content-Length: devices cannot read chunks.
func WriteJSON(w http.ResponseWriter, v any) {
	body, err := rawjson.Marshal(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	WriteBody(w, http.StatusOK, "application/json; charset=utf-8", body)
}

// WriteText answers with plain text.
func WriteText(w http.ResponseWriter, status int, words string) {
	WriteBody(w, status, "text/plain; charset=utf-8", []byte(words))
}

// WriteBody answers with everything at once. A peer that is gone by then needs no answer.
func WriteBody(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// Say gives a message of the catalogue in both languages, each in a line of its own.
func Say(id string, args ...any) string {
	return message.In(text.Chinese, id, args...) + "\n" + message.In(text.English, id, args...) + "\n"
}

// Refuse answers with an error, as [Say] gives it.
func Refuse(w http.ResponseWriter, status int, id string, args ...any) {
	WriteText(w, status, Say(id, args...))
}

// NotAllowed answers a method that a path does not have.
func NotAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	Refuse(w, http.StatusMethodNotAllowed, "connection/method", allow)
}
