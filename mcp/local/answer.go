package local

import (
	"cmp"
	"context"
	"strings"
	"unicode"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
)

// say returns a message in the language of the turn.
func say(ctx context.Context, id string, args ...any) string {
	return message.In(language(ctx), id, args...)
}

// language returns the language of the turn, Chinese if nobody knows it.
func language(ctx context.Context) text.Lang {
	return cmp.Or(text.Lang(mcp.InfoFrom(ctx).Language), text.Chinese)
}

// readable reports whether words may be read by the rules for Chinese and English: in a turn of
// another language only those in plain Latin letters, which is how models write times for programs.
// The kanji of 明日三時 must not pass for Chinese.
func readable(ctx context.Context, words string) bool {
	return language(ctx).IsOwn() || !strings.ContainsFunc(words, func(r rune) bool { return r > unicode.MaxASCII })
}

// tell gives the model something to answer with.
func tell(result string) mcp.ActionResponse {
	return mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: result}
}

// speak answers the user at once, without the model. In a language that there are no words in here, the
// model is to say it.
func speak(ctx context.Context, words string) mcp.ActionResponse {
	if !language(ctx).IsOwn() {
		return tell(words)
	}
	return mcp.ActionResponse{Action: mcp.ActionTypeResponse, Result: words, Response: words}
}

// fail tells the model what went wrong, so that it can repair it or say so.
func fail(why string) mcp.ActionResponse {
	return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: why}
}

// handOver leaves it to the conversation.
func handOver(handler string, args any) mcp.ActionResponse {
	return mcp.ActionResponse{
		Action: mcp.ActionTypeCallHandler,
		Result: mcp.ActionResponseCall{FuncName: handler, Args: args},
	}
}

// textArg is a text among the arguments, "" where there is none.
func textArg(arguments map[string]any, name string) string {
	value, _ := arguments[name].(string)
	return value
}

// intArg is a whole number among the arguments.
func intArg(arguments map[string]any, name string) (int, bool) {
	switch n := arguments[name].(type) {
	case int64:
		return int(n), true
	case int:
		return n, true
	case float64:
		if n == float64(int(n)) {
			return int(n), true
		}
	}
	return 0, false
}
