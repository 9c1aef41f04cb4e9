package iflytek

import (
	"encoding/base64"
	"net/url"
	"testing"
	"time"
)

func TestSignature(t *testing.T) {
	if got := signature("iat-api.xfyun.cn", "/v2/iat", "Tue, 14 Nov 2023 22:13:20 GMT", "testsecret"); got != "FVpgTvH01+oBmoBkAQzUV+/UxXbufBwPcnHU1RCCwqw=" {
		t.Errorf("signature %s", got)
	}
}

func TestSignedAddress(t *testing.T) {
	at, err := url.Parse("wss://iat-api.xfyun.cn/v2/iat")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(signed(at, "key", "testsecret", time.Unix(1700000000, 0)))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	authorization, err := base64.StdEncoding.DecodeString(q.Get("authorization"))
	want := `api_key="key", algorithm="hmac-sha256", headers="host date request-line", signature="FVpgTvH01+oBmoBkAQzUV+/UxXbufBwPcnHU1RCCwqw="`
	if err != nil || string(authorization) != want {
		t.Errorf("authorization %q, %v", authorization, err)
	}
	if q.Get("date") != "Tue, 14 Nov 2023 22:13:20 GMT" || q.Get("host") != "iat-api.xfyun.cn" || u.Path != "/v2/iat" || u.Scheme != "wss" {
		t.Errorf("address %s with date %q, host %q", u.Path, q.Get("date"), q.Get("host"))
	}
}
