package elevenlabs

import (
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// NewTTS makes a voice.
func NewTTS(s service.Section) (providers.TTS, error) { return newHTTP(s) }
