package agent

import (
	"xiaozhi/agent/think"
)

// follower owns which options a conversation works by. It belongs to the conversation's goroutine.
type follower struct{ c *Conversation }

// renew takes the options of the turns to come, if they are others.
func (f *follower) renew() {
	if f.c.o.Latest == nil {
		return
	}
	latest := f.c.o.Latest()
	if latest == nil {
		return
	}
	o := f.c.o.with(latest).withDefaults()
	f.c.o = &o
	f.heed()
	f.c.mic.renew()
	if o.Renewed != nil {
		o.Renewed()
	}
}

// heed has all parts but the microphone work by the options.
func (f *follower) heed() {
	c, o := f.c, f.c.o
	c.whom.o.Store(o)
	c.think = think.Options{
		LLM: o.LLM, FastPath: o.FastPath, Prompts: o.Prompts, Name: o.Name, MaxSteps: o.MaxSteps, MaxCalls: o.MaxCalls,
		MaxDaily: o.MaxDaily, StepTimeout: o.StepTimeout, Zone: o.Zone,
	}
	c.speak = o.speak()
	end := o.Endpoint.WithDefaults()
	c.rules.Commit, c.rules.Trigger, c.rules.MinSpeech, c.rules.Speculations = end.Commit, end.Trigger, end.MinSpeech, o.Drafts
	c.rules.IdleClose, c.rules.SlowAfter, c.rules.RecognizeTimeout = o.IdleClose, o.SlowAfter, o.RecognizeTimeout
	c.rules.StopWords, c.rules.NoEchoGuard, c.rules.Texts = o.StopWords, o.NoEchoGuard, o.Prompts
	if o.Limits != nil && c.env.Tools != nil {
		c.env.Tools.SetLimits(*o.Limits)
	}
}
