package letters

import (
	"xiaozhi/agent/feature/job"
	"xiaozhi/agent/feature/mail"
)

// Notices are kept by an office of letters until devices have heard them.
type Notices struct{ Office *mail.Office }

var _ job.Outbox = Notices{}

// letter is a notice as a letter.
func (Notices) letter(n job.Notice) mail.Letter {
	l := mail.Letter{Device: n.Device, Lang: n.Lang, Text: n.Text, Prompt: n.Instruction, Source: "job"}
	if n.Asked {
		l.Priority = mail.Urgent
	}
	return l
}

// Tell implements [job.Outbox].
func (o Notices) Tell(n job.Notice) error {
	_, err := o.Office.Post(o.letter(n))
	return err
}

// Promise implements [job.Outbox].
func (o Notices) Promise(n job.Notice) (id string, err error) {
	l := o.letter(n)
	l.Held = true
	return o.Office.Post(l)
}

// Keep implements [job.Outbox].
func (o Notices) Keep(id string, n job.Notice) error {
	return o.Office.Amend(id, n.Text, n.Instruction)
}
