package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"xiaozhi/connection/camera"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

const maxDescription = 8 << 10 // bytes of an answer; one that never ends is cut off

// pictures describes pictures: those that devices upload, and those in the results
// of tools. Its methods may be called at the same time.
type pictures struct {
	llm providers.LLM // nil: no model can see
	// of returns the model of whom a device talks to, nil: llm, and whether the device is
	// not known; nil: all have llm.
	of    func(device string) (llm providers.LLM, unknown bool)
	spare func(providers.LLM) providers.LLM // limits a model for devices that are not known; set before devices connect
	texts *prompts.Set
	log   *slog.Logger
}

// Explain answers a question about an uploaded picture (camera.Explainer).
func (p *pictures) Explain(ctx context.Context, upload camera.Picture) (string, error) {
	return p.describe(ctx, upload.DeviceID, upload.Language, upload.Question, providers.Image{MIMEType: upload.MIMEType, Data: upload.Data})
}

// Describe tells what a picture in a tool's result shows (router.Options.Describe).
func (p *pictures) Describe(ctx context.Context, mime string, data []byte, question string) (string, error) {
	language := mcp.InfoFrom(ctx).Language
	if found := http.DetectContentType(data); strings.HasPrefix(found, "image/") {
		mime = found // what tools say of their pictures is not always so
	}
	if strings.TrimSpace(question) == "" {
		question = p.texts.Phrase(prompts.LookQuestion, language)
	}
	text, err := p.describe(ctx, mcp.InfoFrom(ctx).DeviceID, language, question, providers.Image{MIMEType: mime, Data: data})
	if excuse, ok := errors.AsType[*camera.ExcuseError](err); ok {
		p.log.Warn("picture of a tool not explained", "err", err)
		return "", excuse // the model is told this; the rest is for the log
	}
	return text, err
}

// describe asks the models. Its errors are excuses, except for those of ctx.
func (p *pictures) describe(ctx context.Context, device, language, question string, image providers.Image) (string, error) {
	llm := p.llm
	if p.of != nil {
		own, unknown := p.of(device)
		if llm = cmp.Or(own, llm); llm != nil && unknown {
			llm = p.spare(llm)
		}
	}
	if llm == nil {
		return "", &camera.ExcuseError{Text: p.texts.Phrase(prompts.NoVision, language)}
	}
	req := providers.LLMRequest{Language: language, Messages: []providers.Message{
		{Role: providers.RoleSystem, Content: p.texts.Phrase(prompts.LookPrompt, language)},
		{Role: providers.RoleUser, Content: question, Images: []providers.Image{image}},
	}}
	var text strings.Builder
	for d, err := range llm.Generate(ctx, req) {
		if err != nil && ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			down := &camera.ExcuseError{Text: p.texts.Phrase(prompts.VisionDown, language)}
			return "", fmt.Errorf("%w (%w)", down, err)
		}
		if text.WriteString(d.Text); text.Len() > maxDescription {
			break
		}
	}
	return strings.TrimSpace(text.String()), nil
}
