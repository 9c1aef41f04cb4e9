package people

import "testing"

// TestBrowserOf: people find their browsers in the list of sessions.
func TestBrowserOf(t *testing.T) {
	const mozilla = "Mozilla/5.0 "
	for agent, want := range map[string][2]string{
		mozilla + "(X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.0.0 Safari/537.36":                            {"Chrome", "Linux"},
		mozilla + "(Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0":            {"Edge", "Windows"},
		mozilla + "(iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1":  {"Safari", "iPhone"},
		mozilla + "(Macintosh; Intel Mac OS X 10.15; rv:142.0) Gecko/20100101 Firefox/142.0":                                                     {"Firefox", "macOS"},
		mozilla + "(Linux; Android 15; V2324A) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36 MicroMessenger/8.0.60.0": {"WeChat", "Android"},
		"curl/7.88.1":    {"curl", ""},
		"something else": {"", ""},
		"":               {"", ""},
	} {
		if browser, system := browserOf(agent); browser != want[0] || system != want[1] {
			t.Errorf("%s: %q on %q, want %q", agent, browser, system, want)
		}
	}
}
