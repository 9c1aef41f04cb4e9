package conformance

import "net/http"

// Bearing shows a token to h for clients that cannot: the official suite has no way
// to be told of one.
func Bearing(token string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		h.ServeHTTP(w, r)
	})
}
