package providers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretRedacted(t *testing.T) {
	const key = "sk-very-secret-0123"
	type options struct {
		Key  Secret
		Many map[string]Secret
	}
	o := options{Key: key, Many: map[string]Secret{"x": key}}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "key", o.Key, "all", o)
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{"slog": log.String(), "json": string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s"} {
		shown["secret "+verb] = fmt.Sprintf(verb, o.Key)
		shown["options "+verb] = fmt.Sprintf(verb, o)
		shown["pointer "+verb] = fmt.Sprintf(verb, &o)
	}
	for how, text := range shown {
		if strings.Contains(text, key) || strings.Contains(text, fmt.Sprintf("%x", key)) {
			t.Errorf("%s shows the secret: %s", how, text)
		}
		if !strings.Contains(text, redacted) {
			t.Errorf("%s shows no placeholder: %s", how, text)
		}
	}
	if got := o.Key.Reveal(); got != key {
		t.Errorf("Reveal = %q", got)
	}
}

func TestEmptySecret(t *testing.T) {
	if got := fmt.Sprintf("%v|%q", Secret(""), Secret("")); got != `|""` {
		t.Errorf("got %s", got)
	}
}
