package router

import (
	"context"
	"errors"
	"fmt"
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
	maxLooked    = 2                // pictures of one result; more are only named
	maxLookBytes = 4 << 20          // of one picture
	lookTimeout  = 30 * time.Second // of all pictures of one result
)

var (
	errLookTime = errors.New("it took too long")
	errLookMany = fmt.Errorf("only %d are looked at", maxLooked)
	errLookSize = fmt.Errorf("it is larger than %d bytes", maxLookBytes)
)

// look puts a description behind each picture in a result. It ends with ctx, the
// caller's context. The pictures stay.
func (j *job) look(ctx context.Context, result any) any {
	if j.router.options.Describe == nil || j.call.Info.Pictures {
		return result
	}
	switch v := result.(type) {
	case mcp.Image:
		return j.lookAtAll(ctx, []any{v})
	case []any:
		if mcp.HasImage(v) {
			return j.lookAtAll(ctx, v)
		}
	case mcp.ActionResponse:
		v.Result = j.look(ctx, v.Result)
		return v
	case *mcp.ActionResponse:
		if v != nil {
			return j.look(ctx, *v)
		}
	}
	return result
}

// lookAtAll is look for the blocks of one result.
func (j *job) lookAtAll(ctx context.Context, blocks []any) []any {
	lookCtx, cancel := context.WithTimeoutCause(mcp.WithInfo(j.router.life, j.call.Info), lookTimeout, errLookTime)
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	question, _ := j.call.Arguments["question"].(string)
	out, n := make([]any, 0, 2*len(blocks)), 0
	for _, block := range blocks {
		out = append(out, block)
		if image, ok := block.(mcp.Image); ok {
			out = append(out, j.words(lookCtx, image, question, n))
			n++
		}
	}
	return out
}

// words describes the n-th picture of a result, or says why it cannot.
func (j *job) words(ctx context.Context, image mcp.Image, question string, n int) (said string) {
	var err error
	began := time.Now()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("looking crashed: %v", v)
		}
		j.router.log.Info("tool picture looked at", "tool", j.call.Offer.Tool.Name, "call_id", j.call.Call.ID,
			"size", len(image.Data), "took", time.Since(began), "err", err)
		if err != nil {
			said = message.In(text.Lang(j.call.Info.Language), "router/not-seen", text.Shorten(err.Error(), 1<<10))
		}
	}()
	switch {
	case n >= maxLooked:
		err = errLookMany
	case len(image.Data) > maxLookBytes:
		err = errLookSize
	default:
		said, err = j.router.options.Describe(ctx, image.MIMEType, image.Data, question)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	return said
}
