package bench

import "time"

// Size says how much of everything is measured.
type Size string

// The sizes.
const (
	Quick Size = "quick" // seconds: to see that it works
	Small Size = "small" // four minutes
	Full  Size = "full"  // hours: what the definitions ask for
)

// amounts are what a size means.
type amounts struct {
	warm, turns int // M1: turns dropped, turns counted
	crowd       int // M1: devices that are being spoken to meanwhile

	auto, autoTurns int // M2, M3: devices, turns of each

	reply, sentence time.Duration // M4: length of the long reply, and of each of its sentences
	stops           int           // M7: short replies

	aborters, cuts  int // M8: devices, aborts of each
	cancels         int // M9
	bargers, barges int // M10: devices, interruptions of each

	least, most int           // M11: speakers at once
	step, fine  int           // M11: see search
	window      time.Duration // M11, M13, M16: how long is looked at

	idle, memory int           // M12: devices connected, devices spoken to
	settle       time.Duration // M12, M14: until memory is looked at
	cpu          int           // M13: speakers
	churn        int           // M14: cycles
	hellos       int           // M15
	healthy      int           // M16
	segments     int           // M17: replies
	profile      time.Duration // of a processor profile
}

func (s Size) amounts() amounts {
	switch s {
	case Quick:
		return amounts{
			warm: 1, turns: 4, crowd: 2, auto: 1, autoTurns: 1, reply: 2 * time.Second, sentence: time.Second, stops: 1,
			aborters: 2, cuts: 2, cancels: 2, bargers: 1, barges: 1, least: 2, most: 2, step: 1, fine: 1, window: time.Second,
			idle: 5, memory: 2, settle: 100 * time.Millisecond, cpu: 2, churn: 10, hellos: 5, healthy: 2, segments: 2, profile: time.Second,
		}
	case Full:
		return amounts{
			warm: 20, turns: 200, crowd: 50, auto: 4, autoTurns: 55, reply: 10 * time.Minute, sentence: 10 * time.Second, stops: 50,
			aborters: 20, cuts: 500, cancels: 200, bargers: 4, barges: 25, least: 20, most: 300, step: 20, fine: 5, window: 2 * time.Minute,
			idle: 1000, memory: 100, settle: 5 * time.Second, cpu: 50, churn: 10000, hellos: 500, healthy: 49, segments: 30, profile: 20 * time.Second,
		}
	default:
		return amounts{
			warm: 3, turns: 30, crowd: 50, auto: 4, autoTurns: 3, reply: time.Minute, sentence: 10 * time.Second, stops: 5,
			aborters: 10, cuts: 10, cancels: 15, bargers: 4, barges: 2, least: 20, most: 80, step: 20, fine: 20, window: 5 * time.Second,
			idle: 500, memory: 50, settle: time.Second, cpu: 20, churn: 200, hellos: 100, healthy: 49, segments: 10, profile: 5 * time.Second,
		}
	}
}
