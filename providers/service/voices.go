package service

import "context"

// VoiceLister asks a service for the voices that a section may use. It returns within
// the time limits of the section.
type VoiceLister func(ctx context.Context, s Section) ([]Voice, error)
