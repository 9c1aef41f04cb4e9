package agent

import "xiaozhi/mcp"

// effect is what an outcome means for the turn that asked for it.
type effect struct {
	result  string                  // the call's one result in the history
	say     string                  // to be spoken as it is
	again   bool                    // the model is asked once more
	handler *mcp.ActionResponseCall // of the conversation, to be run
	failed  bool                    // worth a warning
	reason  string                  // why it failed, for the ear
	asks    bool                    // the user is asked to allow the call, when all else is said
}

// dispatch returns what the outcome of a tool means in a turn of that language.
func dispatch(r mcp.ActionResponse, language string) effect {
	return effectOf(r.Outcome(language))
}

// failed returns a failure with the result text for the model and the reason
// for the ear, if there is one.
func failed(result, reason, language string) effect {
	return effectOf(mcp.Failure(result, reason, language))
}

func effectOf(o mcp.Outcome) effect {
	return effect{result: o.Text, say: o.Say, again: o.Again, handler: o.Handler, failed: o.Failed, reason: o.Reason}
}
