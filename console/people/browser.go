package people

import "strings"

// browserOf tells what people call the browser and the system that a browser says it is, though it says more of others to be
// let in by old pages; "": it is none that is known.
func browserOf(agent string) (browser, system string) {
	return first(agent, [][2]string{
			{"MicroMessenger/", "WeChat"}, {"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"FxiOS/", "Firefox"}, {"Firefox/", "Firefox"},
			{"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Version/", "Safari"}, {"curl/", "curl"},
		}), first(agent, [][2]string{
			{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"OpenHarmony", "HarmonyOS"}, {"Android", "Android"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"},
		})
}

// first returns what the first sign that a text holds stands for.
func first(text string, signs [][2]string) string {
	for _, s := range signs {
		if strings.Contains(text, s[0]) {
			return s[1]
		}
	}
	return ""
}
