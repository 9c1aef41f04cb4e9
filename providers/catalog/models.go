package catalog

import (
	"xiaozhi/providers/anthropic"
	"xiaozhi/providers/gemini"
	"xiaozhi/providers/ollama"
	"xiaozhi/providers/responses"
	"xiaozhi/providers/service"
)

// models are the kinds whose language models have a protocol of their own.
func models() []service.Kind {
	return []service.Kind{responses.Kind(), anthropic.Kind(), gemini.Kind(), ollama.Kind()}
}
