package record

import (
	"encoding/json"
	"time"

	"xiaozhi/agent"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/providers"
)

// Version is that of the format. A reader takes no other.
const Version = 1

// Entry is one line: a time and what happened then. Exactly one member beside T is set.
type Entry struct {
	T time.Duration `json:"t"` // since Begin.Began

	Begin  *Begin        `json:"begin,omitempty"`
	Memory *agent.Memory `json:"memory,omitempty"` // the conversation runs now, and remembers this
	Agent  *Agent        `json:"agent,omitempty"`  // whom a name stands for, from now on

	// What the device did.
	Frame       *Frame            `json:"frame,omitempty"`
	ListenStart *wire.ListenStart `json:"listen_start,omitempty"`
	ListenStop  *wire.ListenStop  `json:"listen_stop,omitempty"`
	Detect      *wire.Detect      `json:"detect,omitempty"`
	Abort       *wire.Abort       `json:"abort,omitempty"`
	Drain       *Reason           `json:"drain,omitempty"` // the server stops
	Gone        *Reason           `json:"gone,omitempty"`  // the connection ended
	Lag         *time.Duration    `json:"lag,omitempty"`   // how far its socket is behind, from now on

	// What the engines gave.
	VAD  *VAD  `json:"vad,omitempty"`
	ASR  *ASR  `json:"asr,omitempty"`
	LLM  *LLM  `json:"llm,omitempty"`
	Fast *Fast `json:"fast,omitempty"`
	TTS  *TTS  `json:"tts,omitempty"`

	Duplex *Duplex `json:"duplex,omitempty"`
	Voice  *Voice  `json:"voice,omitempty"`

	// Tools and music.
	Tools *Tools `json:"tools,omitempty"`
	Shown *Shown `json:"shown,omitempty"`
	Call  *Call  `json:"call,omitempty"`
	Look  *Look  `json:"look,omitempty"`
	Song  *Song  `json:"song,omitempty"`

	// What the conversation sent.
	Sent   *Sent   `json:"sent,omitempty"`
	Audio  *Audio  `json:"audio,omitempty"`
	HangUp *Reason `json:"hang_up,omitempty"`

	End *Reason `json:"end,omitempty"` // the conversation is over; or why no more was recorded
}

// Begin is the first line.
type Begin struct {
	Version  int          `json:"version"`
	Began    time.Time    `json:"began"`
	Session  wire.Session `json:"session"`
	Settings Settings     `json:"settings"`       // of agent.Options
	Limits   Settings     `json:"limits"`         // of router.Options
	Zone     string       `json:"zone,omitempty"` // of agent.Options; "" is the machine's
	Has      Has          `json:"has"`
	VADFrame int          `json:"vad_frame"` // samples
	ASR      string       `json:"asr"`       // names of the engines
	LLM      string       `json:"llm"`
	TTS      string       `json:"tts"`
	Realtime string       `json:"realtime,omitempty"` // "": there is none
	Codec    string       `json:"codec"`              // see Codec
}

// Agent is an agent as the conversation was told of it.
type Agent struct {
	Asked    string   `json:"asked,omitempty"`    // its name; "": the device's own one
	Unknown  bool     `json:"unknown,omitempty"`  // there is none
	Settings Settings `json:"settings,omitempty"` // of agent.Persona
	ASR      string   `json:"asr,omitempty"`      // names of engines of its own; "": it has those of all
	LLM      string   `json:"llm,omitempty"`
	TTS      string   `json:"tts,omitempty"`
	Realtime string   `json:"realtime,omitempty"`
}

// Has says which of the parts that may be missing were there.
type Has struct {
	FastPath bool `json:"fast_path,omitempty"`
	Music    bool `json:"music,omitempty"`
	Tokens   bool `json:"tokens,omitempty"`
	Sounds   bool `json:"sounds,omitempty"`
	Levels   bool `json:"levels,omitempty"`
	Look     bool `json:"look,omitempty"`
	Agents   bool `json:"agents,omitempty"`
	Voices   bool `json:"voices,omitempty"`
}

// Frame is a packet from the microphone.
type Frame struct {
	Packet []byte
	At     time.Time `json:",omitzero"`  // when it came, if not at T
	Stamp  uint32    `json:",omitempty"` // the packet that was being played meanwhile
}

// Reason is why something ended.
type Reason struct {
	Cause string `json:"cause"`
	Short bool   `json:"short,omitempty"` // of End: the conversation went on
}

// Step says what an engine, a tool or a song did.
type Step string

// The steps. The first of each number is Asked; the last is one of Done, Left,
// Failed, Panicked, Refused.
const (
	Asked    Step = "asked"    // with the request
	Closed   Step = "closed"   // ASR: the utterance is complete
	Gave     Step = "gave"     // a transcript, a delta, sound
	Full     Step = "full"     // ASR: sound was refused
	Refused  Step = "refused"  // ASR: there was no stream, with the fault
	Done     Step = "done"     // nothing more comes
	Left     Step = "left"     // the conversation wanted no more
	Failed   Step = "failed"   // with the fault
	Panicked Step = "panicked" // the engine broke
)

// VAD is a piece of what a detector said: probabilities frame by frame, or a new
// stretch. Its time means nothing.
type VAD struct {
	N     int       `json:"n"`
	P     []float32 `json:"p,omitempty"`
	Reset bool      `json:"reset,omitempty"` // before P
}

// ASR is a step of a recogniser's stream.
type ASR struct {
	N          int                   `json:"n"`
	Step       Step                  `json:"step"`
	Language   string                `json:"language,omitempty"` // Asked
	Samples    int                   `json:"samples,omitempty"`  // Closed, Full: how many were written
	Transcript *providers.Transcript `json:"transcript,omitempty"`
	Fault      *Fault                `json:"fault,omitempty"`
}

// LLM is a step of a model call.
type LLM struct {
	N       int              `json:"n"`
	Step    Step             `json:"step"`
	Request *Request         `json:"request,omitempty"`
	Delta   *providers.Delta `json:"delta,omitempty"`
	Fault   *Fault           `json:"fault,omitempty"`
}

// Request describes what a model was asked.
type Request struct {
	Messages []providers.Message `json:"messages"`
	Tools    []string            `json:"tools,omitempty"`
	NoTools  bool                `json:"no_tools,omitempty"`
	Language string              `json:"language"`
}

// Fast holds what the fast path said to a request; nil: it did not know.
type Fast struct {
	N     int              `json:"n"`
	Delta *providers.Delta `json:"delta,omitempty"`
}

// TTS is a step of a synthesis.
type TTS struct {
	N       int                   `json:"n"`
	Step    Step                  `json:"step"`
	Request *providers.TTSRequest `json:"request,omitempty"`
	Sound   *Sound                `json:"sound,omitempty"`
	Fault   *Fault                `json:"fault,omitempty"`
}

// Duplex is a step of an answer of who hears and speaks by itself, or says from when on it
// had better be asked, or not (N is 0 then).
type Duplex struct {
	N       int                    `json:"n"`
	Step    Step                   `json:"step"`
	Rests   bool                   `json:"rests,omitempty"`
	Results []providers.ToolResult `json:"results,omitempty"` // Asked
	Delta   *providers.DuplexDelta `json:"delta,omitempty"`   // without its sound
	Sound   *Sound                 `json:"sound,omitempty"`
	Fault   *Fault                 `json:"fault,omitempty"`
}

// Sound is a piece of sound. Its PCM is bytes.
type Sound struct {
	providers.Sound
	PCM PCM `json:"PCM,omitempty"`
}

// Tools describes what a source offers from now on.
type Tools struct {
	Source string `json:"source"` // its number; of one in a group, both numbers
	List   []Tool `json:"list"`
}

// Tool is a tool. Schema is text, for it may be broken; When is told by Shown.
type Tool struct {
	mcp.Tool
	Schema  string    `json:"Schema,omitempty"`
	Trusted *bool     `json:"Trusted,omitempty"` // nil: recorded when all servers were
	When    *struct{} `json:"When,omitempty"`
	Depends bool      `json:"depends,omitempty"` // it has a When
}

// Shown says whether a tool with a When is offered from now on.
type Shown struct {
	Source string `json:"source"`
	Tool   string `json:"tool"`
	Yes    bool   `json:"yes"`
}

// Call is a step of a tool call.
type Call struct {
	N         int             `json:"n"`
	Step      Step            `json:"step"`
	Source    string          `json:"source,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    *Value          `json:"result,omitempty"`
	Fault     *Fault          `json:"fault,omitempty"`
}

// Look is a step of looking at a picture.
type Look struct {
	N     int    `json:"n"`
	Step  Step   `json:"step"`
	Text  string `json:"text,omitempty"`
	Fault *Fault `json:"fault,omitempty"`
}

// Song holds what the music library gave: a song that was opened (Asked), its sound
// (Gave) and its end, or which song is next (Done, with Next).
type Song struct {
	N     int    `json:"n"`
	Step  Step   `json:"step"`
	ID    string `json:"id,omitempty"`
	Rate  int    `json:"rate,omitempty"`
	PCM   PCM    `json:"pcm,omitempty"`
	Next  string `json:"next,omitempty"`
	Title string `json:"title,omitempty"`
	Fault *Fault `json:"fault,omitempty"`
}

// Sent is a message to the device.
type Sent struct {
	Kind    string `json:"kind"`
	Turn    uint64 `json:"turn,omitempty"`
	Text    string `json:"text,omitempty"`
	Emotion string `json:"emotion,omitempty"`
	Closing []byte `json:"closing,omitempty"`
	Cut     bool   `json:"cut,omitempty"`
}

// Audio is a packet that was offered to the outbox.
type Audio struct {
	Turn    uint64 `json:"turn"`
	Packet  []byte `json:"packet"`
	Refused bool   `json:"refused,omitempty"` // it was not taken
	// Stamp is what it was stamped with; nil: this outbox stamps nothing.
	Stamp *uint32 `json:"stamp,omitempty"`
}

// kindNames are the names of the kinds of messages in a recording.
func kindNames() map[wire.MessageKind]string {
	return map[wire.MessageKind]string{
		wire.MessageSTT: "stt", wire.MessageTTSStart: "tts_start", wire.MessageSentenceStart: "sentence_start",
		wire.MessageTTSStop: "tts_stop", wire.MessageEmotion: "emotion", wire.MessageChunk: "chunk",
		wire.MessageFinal: "final", wire.MessageThought: "thought", wire.MessageKeepAlive: "keep_alive",
	}
}
