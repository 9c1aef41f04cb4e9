package access

import (
	"net/http"
	"strings"

	"xiaozhi/internal/text/message"
)

// programs begins all paths for programs.
const programs = "/api/v1/"

// elsewhere answers programs that ask at a path that there is not, or by a method that it does not take.
func elsewhere(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var takes []string
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			other := *r
			other.Method = method
			if _, pattern := mux.Handler(&other); strings.HasPrefix(pattern, method+" ") {
				takes = append(takes, method)
			}
		}
		if len(takes) == 0 {
			answer(w, http.StatusNotFound, refusal{"access/no-path", message.Both("access/no-path")})
			return
		}
		all := strings.Join(takes, ", ")
		w.Header().Set("Allow", all)
		answer(w, http.StatusMethodNotAllowed, refusal{"access/method", message.Both("access/method", all)})
	})
}
