package agent

import "time"

type finish int

const (
	finishedMaybe finish = iota
	finishedYes
	finishedNo
)

func finished(text, language string) finish { return finishedMaybe }

type learnedPause struct{}

func (p *learnedPause) delay(base time.Duration, f finish) time.Duration { return base }
func (p *learnedPause) paused(time.Duration)                             {}
func (p *learnedPause) cutOff(time.Duration)                             {}
func (p *learnedPause) turn()                                            {}

type interjectKind int

const (
	interjectNothing interjectKind = iota
	interjectBackchannel
	interjectStop
	interjectSpeech
)

func interjection(text, language string, stopWords []string) interjectKind {
	if bare(text) == "" {
		return interjectNothing
	}
	return interjectSpeech
}
func isEcho(a, b string) bool { return false }
