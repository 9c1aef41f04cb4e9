package aliyun

import (
	"net/http"
	"strconv"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// The statuses of a failed task that are told apart.
const (
	tokenDenied  = 40000001
	wasIdle      = 40000004
	tooMany      = 40000005
	trialOver    = 40000010
	noAppkey     = 40020105
	strangeApp   = 40020106
	nothingHeard = 40270002
	concurrency  = 43040001
	poolEmpty    = 51020001
)

// refusal makes the error of a failed task.
func refusal(status int, words, task string) *transport.Refusal {
	if words == "" {
		words = "the service gave no reason"
	}
	return &transport.Refusal{Kind: kindOf(status, words), Code: strconv.Itoa(status), Text: words, LogID: task}
}

// kindOf maps a status to the kind of failure.
func kindOf(status int, words string) providers.Kind {
	switch status {
	case tokenDenied, noAppkey, strangeApp:
		return providers.Unauthorized
	case tooMany, concurrency, poolEmpty:
		return providers.RateLimited
	case trialOver:
		return providers.NoCredit
	case wasIdle, 40010004, 41040201: // idle, left early, sound with gaps
		return providers.Unavailable
	}
	low := strings.ToLower(words)
	switch {
	case strings.Contains(low, "arrear") || strings.Contains(low, "overdue") || strings.Contains(low, "free_trial_expired"):
		return providers.NoCredit
	case status/10000000 == 4:
		return providers.BadRequest
	}
	return providers.Unavailable
}

// tokenRefused says whether a refusal may be of the token.
func tokenRefused(r *transport.Refusal) bool {
	return r.Code == strconv.Itoa(tokenDenied) || r.Status == http.StatusForbidden || r.Status == http.StatusUnauthorized
}
