package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
)

// Describe puts into words what a picture shows. mime is its type as the tool said
// it, question may be empty. The language to answer in is in InfoFrom(ctx).
type Describe func(ctx context.Context, mime string, data []byte, question string) (string, error)

// Limits of describing the pictures in a result.
const (
	maxLooked    = 2       // pictures of one result; more are only named
	maxLookBytes = 4 << 20 // of one picture
)

var (
	errLookTime = errors.New("it took too long")
	errLookMany = fmt.Errorf("only %d are looked at", maxLooked)
	errLookSize = fmt.Errorf("it is larger than %d bytes", maxLookBytes)
)

// look puts a description behind each picture in a result. It ends with ctx, the
// caller's context. The pictures stay.
func (j *job) look(ctx context.Context, result any) any {
	rt, p := j.router, j.call
	if rt.options.Describe == nil || p.Info.Pictures || !holdsImage(result) {
		return result
	}
	lookCtx, cancel := context.WithTimeoutCause(mcp.WithInfo(rt.life, p.Info), rt.options.DescribeTimeout, errLookTime)
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	question, _ := p.Arguments["question"].(string)
	switch v := result.(type) {
	case mcp.Image:
		return []any{v, j.words(lookCtx, v, question, 0)}
	case []any:
		return j.lookAtAll(lookCtx, v, question)
	case mcp.ActionResponse:
		v.Result = j.look(ctx, v.Result)
		return v
	case *mcp.ActionResponse:
		return j.look(ctx, *v)
	}
	return result
}

// lookAtAll is look for the blocks of one result.
func (j *job) lookAtAll(ctx context.Context, blocks []any, question string) []any {
	out, n := make([]any, 0, 2*len(blocks)), 0
	for _, block := range blocks {
		out = append(out, block)
		if image, ok := block.(mcp.Image); ok {
			out = append(out, j.words(ctx, image, question, n))
			n++
		}
	}
	return out
}

// holdsImage reports whether there is anything to look at in a result.
func holdsImage(result any) bool {
	switch v := result.(type) {
	case mcp.Image:
		return true
	case []any:
		return slices.ContainsFunc(v, func(block any) bool { _, ok := block.(mcp.Image); return ok })
	case mcp.ActionResponse:
		return holdsImage(v.Result)
	case *mcp.ActionResponse:
		return v != nil && holdsImage(v.Result)
	}
	return false
}

// words describes the n-th picture of a result, or says why it cannot.
func (j *job) words(ctx context.Context, image mcp.Image, question string, n int) (text string) {
	var err error
	began := time.Now()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("looking crashed: %v", v)
		}
		j.router.log.Info("tool picture looked at", "tool", j.call.Offer.Tool.Name, "call_id", j.call.Call.ID,
			"size", len(image.Data), "took", time.Since(began), "err", err)
		if err != nil {
			text = unseen(j.call.Info.Language, err)
		}
	}()
	switch {
	case n >= maxLooked:
		err = errLookMany
	case len(image.Data) > maxLookBytes:
		err = errLookSize
	default:
		text, err = j.router.options.Describe(ctx, image.MIMEType, image.Data, question)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	return text
}

// unseen stands in a result where a picture could not be looked at.
func unseen(language string, err error) string {
	return message.In(text.Lang(language), "router/not-seen", text.Shorten(err.Error(), 1<<10))
}
