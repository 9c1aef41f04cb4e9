package minimax

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// TestListVoices: those of the account come first; a refusal inside an answer is one.
func TestListVoices(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.Path != "/v1/get_voice" || string(body) != `{"voice_type":"all"}` {
			t.Errorf("%s %s %s", r.Method, r.URL, body)
		}
		if r.Header.Get("Authorization") != "Bearer "+servicetest.Key {
			fmt.Fprint(w, `{"base_resp":{"status_code":1004,"status_msg":"login fail"}}`)
			return
		}
		fmt.Fprint(w, `{"system_voice":[{"voice_id":"female-shaonv","voice_name":"Shaonv","description":["x"]}],"voice_cloning":[{"voice_id":"mine"}],"base_resp":{"status_code":0}}`)
	}))
	defer server.Close()
	s := service.Section{Name: "m", Key: servicetest.Key, BaseURL: server.URL}
	all, err := Kind().ListVoices(t.Context(), s)
	if err != nil || len(all) != 2 || all[0].Name != "mine" || all[1].Title != "Shaonv" {
		t.Errorf("%v, %v", all, err)
	}
	s.Key = "sk-wrong"
	if _, err := Kind().ListVoices(t.Context(), s); transport.CauseOf(err, false) != transport.CauseKey {
		t.Errorf("a wrong key: %v", err)
	}
}
