package tencent

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"xiaozhi/internal/servicetest"
)

// single is a request by itself: recognition or a voice.
type single struct {
	SourceType  int
	VoiceFormat string
	Data        string
	DataLen     int
	Engine      string `json:"EngSerViceType"`

	Text       string
	SessionID  string `json:"SessionId"`
	Codec      string
	SampleRate int
}

// tc3 returns the signature of a request.
func tc3(secret, service, host, contentType string, body []byte, at time.Time) (scope, signature string) {
	sum := func(b []byte) string {
		h := sha256.Sum256(b)
		return hex.EncodeToString(h[:])
	}
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		_, _ = h.Write([]byte(text))
		return h.Sum(nil)
	}
	date := at.UTC().Format("2006-01-02")
	scope = date + "/" + service + "/tc3_request"
	canonical := "POST\n/\n\ncontent-type:" + contentType + "\nhost:" + host + "\n\ncontent-type;host\n" + sum(body)
	text := fmt.Sprintf("TC3-HMAC-SHA256\n%d\n%s\n%s", at.Unix(), scope, sum([]byte(canonical)))
	key := mac(mac(mac([]byte("TC3"+secret), date), service), "tc3_request")
	return scope, hex.EncodeToString(mac(key, text))
}

// request answers a single request. Errors have status 200.
func (f *fake) request(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header, Body: body})
	var req single
	code, message := f.judgeSingle(r, body)
	if code == "" && (err != nil || json.Unmarshal(body, &req) != nil) {
		code, message = "InvalidParameter", "the body is no JSON"
	}
	answer := map[string]any{"RequestId": "a1b2c3d4"}
	fault := f.Fault()
	if code == "" {
		switch r.Header.Get("X-TC-Action") {
		case "SentenceRecognition":
			code, message = f.recognise(req, answer)
		default:
			code, message = f.voice(req, answer)
		}
	}
	if code != "" {
		answer["Error"] = map[string]any{"Code": code, "Message": message}
		if fault != servicetest.Silent && fault != servicetest.Slow {
			fault = servicetest.None
		}
	}
	reply := servicetest.Reply{Type: "application/json", Body: servicetest.JSON(map[string]any{"Response": answer}).Data, Broken: []byte(`{"Response":{"Aud`)}
	w.Header().Set("Date", f.Now().UTC().Format(http.TimeFormat))
	f.Send(w, r, fault, reply)
}

// judgeSingle returns the code with which a request is refused, or "".
func (f *fake) judgeSingle(r *http.Request, body []byte) (code, message string) {
	service, version := "asr", "2019-06-14"
	if r.Header.Get("X-TC-Action") == "TextToVoice" {
		service, version = "tts", "2019-08-23"
	}
	stamp, _ := strconv.ParseInt(r.Header.Get("X-TC-Timestamp"), 10, 64)
	contentType, auth := r.Header.Get("Content-Type"), r.Header.Get("Authorization")
	right := false
	for _, host := range []string{r.Host, service + ".tencentcloudapi.com"} {
		scope, signature := tc3(servicetest.Secret, service, host, contentType, body, time.Unix(stamp, 0))
		right = right || auth == "TC3-HMAC-SHA256 Credential="+servicetest.Key+"/"+scope+", SignedHeaders=content-type;host, Signature="+signature
	}
	fault := f.Fault()
	switch {
	case !strings.Contains(auth, "Credential="+servicetest.Key+"/") || fault == servicetest.WrongKey:
		return "AuthFailure.SecretIdNotFound", "The SecretId is not found, please ensure that your SecretId is correct."
	case f.Now().Sub(time.Unix(stamp, 0)).Abs() > window:
		return "AuthFailure.SignatureExpire", "The provided credentials have expired."
	case !right:
		return "AuthFailure.SignatureFailure", "The provided credentials could not be validated. Please check your signature is correct."
	case r.Header.Get("X-TC-Version") != version:
		return "NoSuchVersion", "The API version does not exist."
	case fault == servicetest.NoMoney:
		return "UnsupportedOperation.AccountArrears", "The account is in arrears."
	case fault == servicetest.RateLimited:
		return "RequestLimitExceeded", "Your current request times equals to 21 in a second, which exceeds the frequency limit."
	}
	return "", ""
}

// recognise puts what is heard into the answer.
func (f *fake) recognise(req single, answer map[string]any) (code, message string) {
	sound, err := base64.StdEncoding.DecodeString(req.Data)
	switch {
	case err != nil || req.SourceType != 1 || req.DataLen != len(sound):
		return "InvalidParameterValue.ErrorInvalidVoicedata", "The sound is not valid."
	case f.Fault() == servicetest.WrongModel || req.Engine == "":
		return "InvalidParameterValue.ErrorInvalidEngservice", "EngSerViceType is not valid."
	case req.VoiceFormat == "wav" && len(sound) > 44:
		sound = sound[44:]
	case req.VoiceFormat != "pcm":
		return "InvalidParameterValue.ErrorInvalidVoiceFormat", "VoiceFormat is not valid."
	}
	answer["Result"], answer["AudioDuration"] = "", len(sound)/32
	if servicetest.Loud(sound) {
		answer["Result"] = servicetest.Words
	}
	return "", ""
}

// voice puts the sound of a text into the answer.
func (f *fake) voice(req single, answer map[string]any) (code, message string) {
	if req.SampleRate == 0 {
		req.SampleRate = 16000
	}
	sound := servicetest.Speech(req.Text, req.SampleRate)
	switch {
	case req.Text == "" || len([]rune(req.Text)) > maxText || req.SessionID == "":
		return "UnsupportedOperation.TextTooLong", "The text is empty or too long."
	case f.Fault() == servicetest.WrongVoice:
		return "InvalidParameterValue.VoiceType", "VoiceType is not valid."
	case req.Codec == "mp3":
		sound = servicetest.MP3(req.Text)
	case req.Codec == "wav" || req.Codec == "":
		sound = append(servicetest.WAV(req.SampleRate, uint32(len(sound))), sound...)
	}
	answer["Audio"], answer["SessionId"] = base64.StdEncoding.EncodeToString(sound), req.SessionID
	return "", ""
}
