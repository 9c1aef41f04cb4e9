package catalog

import (
	"xiaozhi/providers/anthropic"
	"xiaozhi/providers/bailian"
	"xiaozhi/providers/coze"
	"xiaozhi/providers/dify"
	"xiaozhi/providers/fastgpt"
	"xiaozhi/providers/gemini"
	"xiaozhi/providers/homeassistant"
	"xiaozhi/providers/n8n"
	"xiaozhi/providers/ollama"
	"xiaozhi/providers/ragflow"
	"xiaozhi/providers/responses"
	"xiaozhi/providers/service"
)

// models are the kinds whose language models have a protocol of their own.
func models() []service.Kind {
	return []service.Kind{responses.Kind(), anthropic.Kind(), gemini.Kind(), ollama.Kind()}
}

// platforms are the kinds that keep the dialogue themselves.
func platforms() []service.Kind {
	return []service.Kind{dify.Kind(), coze.Kind(), fastgpt.Kind(), homeassistant.Kind(), n8n.Kind(), bailian.Kind(), ragflow.Kind()}
}
