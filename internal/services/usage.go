package services

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"xiaozhi/internal/timeline"
	"xiaozhi/providers/service"
)

// Bounds of what is looked at for [Usage].
const (
	usageRequests = 100             // of a service, the last ones
	usageTurns    = 400             // that are looked through for them
	usageAge      = 5 * time.Second // how old an answer may be
)

// Usage sums up the last requests to a service in one role, 100 at most.
type Usage struct {
	Requests int
	Failed   int
	Won      int           // answers that came before that of another one which was asked earlier
	P50, P95 time.Duration // until the first result
	Cost     float64       // in the owner's money
	Unpriced int           // of Requests, those of which no cost is known

	first []int64
}

// usages keep the last answer. They may be used at the same time.
type usages struct {
	mu   sync.Mutex
	at   time.Time
	last map[service.Role]map[string]Usage
}

var ops = map[string]service.Role{"recognize": service.ASR, "think": service.LLM, "speak": service.TTS, "converse": service.Realtime}

// Usage sums up by role and service what kept turns say of their last requests; nothing where no turns are kept.
func (s *Services) Usage(ctx context.Context) map[service.Role]map[string]Usage {
	if s.o.Spans == nil {
		return nil
	}
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	if time.Since(s.usage.at) < usageAge {
		return s.usage.last
	}
	all := map[service.Role]map[string]*Usage{}
	err := s.o.Spans(ctx, usageTurns, func(doc string) {
		var spans timeline.Spans
		if json.Unmarshal([]byte(doc), &spans) == nil { // what cannot be read says nothing
			addUsage(all, &spans)
		}
	})
	if err != nil {
		return s.usage.last
	}
	s.usage.at, s.usage.last = time.Now(), map[service.Role]map[string]Usage{}
	for role, names := range all {
		s.usage.last[role] = map[string]Usage{}
		for name, u := range names {
			u.P50, u.P95 = quantile(u.first, 50), quantile(u.first, 95)
			s.usage.last[role][name] = *u
		}
	}
	return s.usage.last
}

// addUsage adds the requests of one turn.
func addUsage(all map[service.Role]map[string]*Usage, spans *timeline.Spans) {
	turn := spans.Attempts
	for _, a := range turn {
		role, known := ops[a.Op]
		if !known {
			continue
		}
		if all[role] == nil {
			all[role] = map[string]*Usage{}
		}
		u := all[role][a.Provider]
		if u == nil {
			u = &Usage{}
			all[role][a.Provider] = u
		}
		if u.Requests == usageRequests {
			continue
		}
		u.Requests++
		if u.Cost += a.Cost; a.Cost == 0 {
			u.Unpriced++
		}
		switch {
		case a.Outcome == timeline.Failed:
			u.Failed++
		case a.Outcome == timeline.Answered && slices.ContainsFunc(turn, func(o timeline.SpanAttempt) bool {
			return o.Op == a.Op && o.Part == a.Part && o.Outcome == timeline.Lost && o.At < a.At
		}):
			u.Won++
		}
		if wait := waited(spans, a); wait > 0 {
			u.first = append(u.first, wait)
		}
	}
}

// waited returns how long a request had the turn wait for its first result, in milliseconds; 0: there was none. Recognisers
// that are asked when the user begins to speak are given the end of the utterance first, and their transcript counts.
func waited(spans *timeline.Spans, a timeline.SpanAttempt) int64 {
	if a.Op != "recognize" || a.First == 0 {
		return a.First
	}
	if spans.Zero == 0 { // it is not known when the user had ended
		return 0
	}
	return max(1, a.At+a.Took-max(a.At, spans.Marks[timeline.MarkEndpoint]))
}

// quantile returns the time that so many of a hundred are not above; 0 if there are none.
func quantile(all []int64, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.SortFunc(all, cmp.Compare)
	return time.Duration(all[min(len(all)-1, (len(all)*percent+99)/100-1)]) * time.Millisecond
}
