package store

import (
	"context"
	"database/sql"
	"time"
)

// Conversation is a run of turns between one person and one device.
type Conversation struct {
	ID       string
	DeviceID string
	AgentID  string // whom its last turn is of
	UserID   string
	BeganAt  time.Time
	EndedAt  time.Time // zero: it goes on
	Cause    string    // of its end
	Turns    int       // counted when turns are written
	Title    string
	Kept     bool // it stays when others of its age are deleted
}

const conversationColumns = "id, device_id, agent_id, user_id, began_at, ended_at, cause, turns, title, kept"

func (c *Conversation) fields() []any {
	return []any{
		text{&c.ID}, text{&c.DeviceID}, maybe{&c.AgentID}, maybe{&c.UserID}, stamp{&c.BeganAt}, stamp{&c.EndedAt}, maybe{&c.Cause},
		whole{&c.Turns}, maybe{&c.Title}, flag{&c.Kept},
	}
}

// Turn is an utterance and its reply, or something the server said by itself.
type Turn struct {
	ID             string
	ConversationID string
	DeviceID       string
	Seq            int // within the conversation, from one
	At             time.Time
	Kind, Mode     string
	AgentID        string // whom it is of
	AgentRev       int    // of that agent's settings; 0: the store has none of them
	Language       string
	Heard          string // what the user said
	Said           string // what the user heard of the reply
	Cause          string // of its end
	Fault          string

	EOU, ASR, TTFT, TTFS, TTFB, Added, E2E, LeadMin time.Duration // times of the turn, see docs/bench.md
	Frames, Underruns, Steps                        int
	Speculation                                     string
	ASRName, LLMName, TTSName                       string // providers that served it
	TokensIn, TokensOut, TTSChars                   int
	ASRSound                                        time.Duration
	CostMicros                                      *int   // millionths of the currency of the prices; nil: not known
	Rating                                          int    // -1, 0 or 1
	Spans                                           string // JSON, at most 8 KiB

	Speaker     string // id of the person who was speaking; [StrangerSpoke]; "": it is not known
	SpeakerSure int    // how much the voices were alike, in per cent
}

// StrangerSpoke is the [Turn].Speaker of somebody who is not known by the voice.
const StrangerSpoke = "-"

// Cost returns what is known of what the turn has cost, in millionths of the currency.
func (t *Turn) Cost() int {
	if t.CostMicros == nil {
		return 0
	}
	return *t.CostMicros
}

const turnColumns = "id, conversation_id, device_id, seq, at, kind, mode, agent_id, agent_rev, language, heard, said, cause, fault, " +
	"eou_ms, asr_ms, ttft_ms, ttfs_ms, ttfb_ms, added_ms, e2e_ms, lead_min_ms, frames, underruns, steps, speculation, asr, llm, tts, " +
	"tokens_in, tokens_out, tts_chars, asr_sound_ms, cost_micros, rating, spans, speaker, speaker_sure"

func (t *Turn) fields() []any {
	return []any{
		text{&t.ID}, text{&t.ConversationID}, text{&t.DeviceID}, whole{&t.Seq}, stamp{&t.At}, text{&t.Kind}, maybe{&t.Mode}, maybe{&t.AgentID}, number{&t.AgentRev},
		maybe{&t.Language}, maybe{&t.Heard}, maybe{&t.Said}, text{&t.Cause}, maybe{&t.Fault},
		span{&t.EOU}, span{&t.ASR}, span{&t.TTFT}, span{&t.TTFS}, span{&t.TTFB}, span{&t.Added}, span{&t.E2E}, span{&t.LeadMin},
		number{&t.Frames}, number{&t.Underruns}, number{&t.Steps}, maybe{&t.Speculation}, maybe{&t.ASRName}, maybe{&t.LLMName}, maybe{&t.TTSName},
		number{&t.TokensIn}, number{&t.TokensOut}, number{&t.TTSChars}, span{&t.ASRSound}, choice{&t.CostMicros}, number{&t.Rating}, maybe{&t.Spans}, maybe{&t.Speaker}, number{&t.SpeakerSure},
	}
}

// Message is one message of a turn as the model was shown it.
type Message struct {
	TurnID string
	Seq    int // within the turn, from one
	Role   string
	Body   string // JSON
}

const messageColumns = "turn_id, seq, role, body"

func (m *Message) fields() []any {
	return []any{text{&m.TurnID}, whole{&m.Seq}, text{&m.Role}, text{&m.Body}}
}

// Call is one call of a tool.
type Call struct {
	ID        string
	TurnID    string // "": it came from outside of a turn
	DeviceID  string
	At        time.Time
	Caller    string // model, gateway, …
	Name      string
	Source    string
	Kind      string
	Arguments string // JSON; "": not kept
	Action    int
	Result    string
	Fault     string
	Consent   string
	Took      time.Duration

	ArgumentsDigest string // of its arguments, which may not be kept; "": none was made
	ResultDigest    string // of its true result
	Refusal         string // why it was not made; "": it was
	Late            bool   // it failed after its success was assumed
}

const callColumns = "id, turn_id, device_id, at, caller, name, source, kind, arguments, action, result, fault, consent, took_ms, " +
	"arguments_digest, result_digest, refusal, late"

func (c *Call) fields() []any {
	return []any{
		text{&c.ID}, maybe{&c.TurnID}, maybe{&c.DeviceID}, stamp{&c.At}, text{&c.Caller}, text{&c.Name}, text{&c.Source}, text{&c.Kind},
		maybe{&c.Arguments}, number{&c.Action}, maybe{&c.Result}, maybe{&c.Fault}, maybe{&c.Consent}, span{&c.Took},
		maybe{&c.ArgumentsDigest}, maybe{&c.ResultDigest}, maybe{&c.Refusal}, flag{&c.Late},
	}
}

// Entry is a finished turn with all that belongs to it. It is written whole or not at all.
type Entry struct {
	Conversation Conversation // added with its first turn that is written
	Turn         Turn
	Agent        string // slug of whom the turn is of, made if the store has none, in place of Conversation.AgentID and Turn.AgentID; "": not known
	Messages     []Message
	Calls        []Call
	// Rest adds Messages and Calls, on the goroutine that writes: whoever hands a turn over does not wait for that. nil:
	// they are there. RestSize is about how many bytes they will take.
	Rest     func(e *Entry)
	RestSize int

	bytes int // size, as it was counted when it was handed over
}

// complete adds the rest.
func (e *Entry) complete() {
	if e.Rest != nil {
		e.Rest(e)
		e.Rest = nil
	}
}

// size is about how much memory an entry takes, in bytes.
func (e *Entry) size() int {
	n := 1024 + e.RestSize + len(e.Turn.Heard) + len(e.Turn.Said) + len(e.Turn.Spans) + len(e.Turn.Fault) + len(e.Conversation.Title)
	for i := range e.Messages {
		n += 96 + len(e.Messages[i].Body)
	}
	for i := range e.Calls {
		n += 256 + len(e.Calls[i].Arguments) + len(e.Calls[i].Result) + len(e.Calls[i].Fault)
	}
	return n
}

// Conversations is the table of conversations. They are written by [Log].
type Conversations struct{ db *database }

const selectConversation = "SELECT " + conversationColumns + " FROM conversations"

// List lists conversations of a device, or of all for "", the newest first.
func (t *Conversations) List(ctx context.Context, deviceID string, p Page) ([]Conversation, error) {
	at, id, limit := p.bounds()
	if deviceID == "" {
		return list[Conversation](ctx, t.db.read, selectConversation+" WHERE (began_at, id) < ($1, $2) ORDER BY began_at DESC, id DESC LIMIT $3", at, id, limit)
	}
	return list[Conversation](ctx, t.db.read, selectConversation+" WHERE device_id = $1 AND (began_at, id) < ($2, $3) ORDER BY began_at DESC, id DESC LIMIT $4",
		deviceID, at, id, limit)
}

// Get returns the conversation of an id.
func (t *Conversations) Get(ctx context.Context, id string) (Conversation, error) {
	return first[Conversation](ctx, t.db.read, selectConversation+" WHERE id = $1", id)
}

// Keep says whether a conversation stays when others of its age are deleted.
func (t *Conversations) Keep(ctx context.Context, id string, keep bool) error {
	return t.db.execOne(ctx, "UPDATE conversations SET kept = $1 WHERE id = $2", keep, id)
}

// Delete deletes a conversation with its turns.
func (t *Conversations) Delete(ctx context.Context, id string) error {
	return t.db.change(ctx, func(tx *sql.Tx) error {
		return t.db.erase(ctx, tx, id)
	})
}

// Trim deletes conversations of a device that began before a time and are not kept, at most limit of them, and
// returns how many. Call it until that is less than limit: each call holds up other writers.
func (t *Conversations) Trim(ctx context.Context, deviceID string, before time.Time, limit int) (int64, error) {
	return t.db.exec(ctx, "DELETE FROM conversations WHERE id IN (SELECT id FROM conversations WHERE device_id = $1 AND began_at < $2 AND NOT kept ORDER BY began_at, id LIMIT $3)",
		deviceID, before.UnixMilli(), limit)
}

// Turns is the table of turns with their messages and calls. They are written by [Log].
type Turns struct{ db *database }

const selectTurn = "SELECT " + turnColumns + " FROM turns"

// List lists turns of a device, or of all for "", the newest first.
func (t *Turns) List(ctx context.Context, deviceID string, p Page) ([]Turn, error) {
	at, id, limit := p.bounds()
	if deviceID == "" {
		return list[Turn](ctx, t.db.read, selectTurn+" WHERE (at, id) < ($1, $2) ORDER BY at DESC, id DESC LIMIT $3", at, id, limit)
	}
	return list[Turn](ctx, t.db.read, selectTurn+" WHERE device_id = $1 AND (at, id) < ($2, $3) ORDER BY at DESC, id DESC LIMIT $4", deviceID, at, id, limit)
}

// Of lists the turns of a conversation in their order, from the one after seq on, at most limit of them.
func (t *Turns) Of(ctx context.Context, conversationID string, seq, limit int) ([]Turn, error) {
	return list[Turn](ctx, t.db.read, selectTurn+" WHERE conversation_id = $1 AND seq > $2 ORDER BY seq, id LIMIT $3", conversationID, seq, min(limit, MaxPage))
}

// Dialogue holds the last turns with a device.
type Dialogue struct {
	Conversation Conversation
	Last         Turn
	Messages     []Message // of the conversation's last turns, in their order
}

// ahead is how far turns may lie in the future that are still of the last conversation: the clock was set back by so
// much. What is of a later time was said while the clock was wrong.
const ahead = 10 * time.Minute

// Dialogue returns the last conversation of a device that has a turn, with the messages of its last turns, at most
// limit of these; [ErrNotFound] if there is none.
func (t *Turns) Dialogue(ctx context.Context, deviceID string, limit int) (d Dialogue, err error) {
	if d.Last, err = first[Turn](ctx, t.db.read, selectTurn+" WHERE device_id = $1 AND at <= $2 ORDER BY at DESC, id DESC LIMIT 1",
		deviceID, t.db.clock().Add(ahead).UnixMilli()); err != nil {
		return d, err
	}
	if d.Conversation, err = first[Conversation](ctx, t.db.read, selectConversation+" WHERE id = $1", d.Last.ConversationID); err != nil {
		return d, err
	}
	d.Messages, err = list[Message](ctx, t.db.read, "SELECT m.turn_id, m.seq, m.role, m.body FROM messages m JOIN turns t ON t.id = m.turn_id "+
		"WHERE t.conversation_id = $1 AND t.seq > $2 ORDER BY t.seq, m.turn_id, m.seq", d.Conversation.ID, d.Last.Seq-limit)
	return d, err
}

// Get returns a turn with its messages and calls.
func (t *Turns) Get(ctx context.Context, id string) (turn Turn, messages []Message, calls []Call, err error) {
	if turn, err = first[Turn](ctx, t.db.read, selectTurn+" WHERE id = $1", id); err != nil {
		return turn, nil, nil, err
	}
	if messages, err = list[Message](ctx, t.db.read, "SELECT "+messageColumns+" FROM messages WHERE turn_id = $1 ORDER BY seq", id); err != nil {
		return turn, nil, nil, err
	}
	calls, err = list[Call](ctx, t.db.read, "SELECT "+callColumns+" FROM tool_calls WHERE turn_id = $1 ORDER BY at, id", id)
	return turn, messages, calls, err
}

// Rate keeps what somebody thinks of a turn: -1, 0 or 1.
func (t *Turns) Rate(ctx context.Context, id string, rating int) error {
	return t.db.execOne(ctx, "UPDATE turns SET rating = $1 WHERE id = $2", rating, id)
}
