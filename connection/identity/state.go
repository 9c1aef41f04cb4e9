package identity

// State says what is known of a pair of Device-Id and Client-Id.
type State int

// The states of a pair.
const (
	Newcomer State = iota // nobody knows it yet; it may be waiting to be paired
	Paired                // it is known: accepted by a person, or the first that came in mode open
	Browser               // the same of a web page, which keeps no token
	Stranger              // it says the Device-Id of another pair
	Refused               // a person has refused it
)

// String returns the state's stable name, as it is stored and logged.
func (s State) String() string {
	return [...]string{"new", "paired", "browser", "stranger", "refused"}[s]
}

// ParseState returns the state of a stored name.
func ParseState(name string) (s State, ok bool) {
	for s := Newcomer; s <= Refused; s++ {
		if s.String() == name {
			return s, true
		}
	}
	return Newcomer, false
}

// known reports whether the pair holds its Device-Id.
func (s State) known() bool { return s == Paired || s == Browser }

// Mode says how a pair becomes known.
type Mode int

// The modes. [Auto] is Open while nobody owns the server, then Ask.
const (
	Auto   Mode = iota
	Open        // the first pair that comes from near is known
	Ask         // a person accepts a code
	Closed      // nobody becomes known
)

// String returns the mode's name in the settings.
func (m Mode) String() string { return [...]string{"auto", "open", "ask", "closed"}[m] }

// ParseMode returns the mode of a name in the settings.
func ParseMode(name string) (m Mode, ok bool) {
	for m := Auto; m <= Closed; m++ {
		if m.String() == name {
			return m, true
		}
	}
	return Auto, false
}

// Proof says what the token shows that came with a connection.
type Proof int

// The proofs.
const (
	Unneeded Proof = iota // the pair has never used a token, so none can be missed
	Right                 // the pair's own token
	Missing               // none or a wrong one, of a pair that has used its own
)

// Event is something that happens to a pair.
type Event int

// The events.
const (
	Asked    Event = iota // it asks where to connect (OTA), where devices show no token
	Arrived               // it connects
	Accepted              // a person accepts it
	Rejected              // a person refuses it
)

// Sight describes the circumstances of an event.
type Sight struct {
	Mode    Mode // Open, Ask or Closed
	Near    bool // it comes from this machine or a private network, or shows the token that all devices share
	Claimed bool // another pair holds its Device-Id
	Page    bool // it is a web page
	Proof   Proof
}

// Verdict says how a device is treated.
type Verdict int

// The verdicts.
const (
	Welcome    Verdict = iota // it is who it says it is
	AsStranger                // it talks, without what belongs to a known device
	MustPair                  // a person must accept its code first
	NoPairing                 // nobody is accepted
	Denied                    // it was refused by a person
)

// Next returns the state of a pair after an event, and how its device is treated. It
// is the only place that decides so.
func Next(s State, e Event, see Sight) (State, Verdict) {
	switch {
	case e == Rejected:
		return Refused, Denied
	case e == Accepted && see.Page:
		return Browser, Welcome
	case e == Accepted:
		return Paired, Welcome
	case s == Refused:
		return Refused, Denied
	case s.known():
		return s, knownVerdict(e, see)
	case see.Mode == Closed:
		return s, NoPairing
	case see.Mode != Open || !see.Near:
		return s, MustPair
	case see.Claimed:
		return Stranger, AsStranger
	case see.Page:
		return Browser, Welcome
	default:
		return Paired, Welcome
	}
}

// knownVerdict says how a pair is treated that is known. Near and in mode open the
// Client-Id is proof enough: the same request for an address would give it a token.
func knownVerdict(e Event, see Sight) Verdict {
	switch {
	case e == Asked, see.Proof == Right,
		see.Near && see.Proof == Unneeded,
		see.Near && see.Mode == Open:
		return Welcome
	case see.Mode == Closed:
		return NoPairing
	default:
		return MustPair
	}
}
