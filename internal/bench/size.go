package bench

import "time"

// Size selects how much of everything is measured.
type Size string

// The sizes.
const (
	Quick Size = "quick" // seconds: shows that it works
	Small Size = "small" // four minutes
	Full  Size = "full"  // hours: all that the definitions ask for
)

// amounts holds the numbers that one size stands for, by scenario.
type amounts struct {
	press   pressAmounts
	auto    autoAmounts
	long    replyAmounts
	abort   abortAmounts
	barge   bargeAmounts
	density densityAmounts
	memory  memoryAmounts

	speakers int           // M13
	cycles   int           // M14
	hellos   int           // M15
	healthy  int           // M16: devices beside the one that does not read
	segments int           // M17: replies
	window   time.Duration // M11, M13, M16: length of one observation
	profile  time.Duration // length of a processor profile
}

// pressAmounts are those of M1: turns dropped, turns counted, and devices that are
// spoken to meanwhile.
type pressAmounts struct{ warm, turns, crowd int }

// autoAmounts are those of M2 and M3: devices and the turns of each.
type autoAmounts struct{ devices, turns int }

// replyAmounts are those of M4 to M7.
type replyAmounts struct {
	length, sentence time.Duration // of the long reply and of each of its sentences
	short            int           // short replies
}

// abortAmounts are those of M8 and M9: devices, aborts of each, and aborts whose
// requests to providers are watched.
type abortAmounts struct{ devices, cuts, cancels int }

// bargeAmounts are those of M10: devices and the interruptions of each.
type bargeAmounts struct{ devices, times int }

// densityAmounts are those of M11: the bounds of the number of speakers, and the
// steps of the search.
type densityAmounts struct{ least, most, step, fine int }

// memoryAmounts are those of M12.
type memoryAmounts struct {
	idle, speaking int           // devices
	settle         time.Duration // M12, M14: pause before memory is read
}

// amounts returns the numbers of a size.
func (s Size) amounts() amounts {
	switch s {
	case Quick:
		return amounts{
			press: pressAmounts{warm: 1, turns: 4, crowd: 2}, auto: autoAmounts{devices: 1, turns: 1},
			long:  replyAmounts{length: 2 * time.Second, sentence: time.Second, short: 1},
			abort: abortAmounts{devices: 2, cuts: 2, cancels: 2}, barge: bargeAmounts{devices: 1, times: 1},
			density:  densityAmounts{least: 2, most: 2, step: 1, fine: 1},
			memory:   memoryAmounts{idle: 5, speaking: 2, settle: 100 * time.Millisecond},
			speakers: 2, cycles: 10, hellos: 5, healthy: 2, segments: 2, window: time.Second, profile: time.Second,
		}
	case Full:
		return amounts{
			press: pressAmounts{warm: 20, turns: 200, crowd: 50}, auto: autoAmounts{devices: 4, turns: 55},
			long:  replyAmounts{length: 10 * time.Minute, sentence: 10 * time.Second, short: 50},
			abort: abortAmounts{devices: 20, cuts: 500, cancels: 200}, barge: bargeAmounts{devices: 4, times: 25},
			density:  densityAmounts{least: 20, most: 300, step: 20, fine: 5},
			memory:   memoryAmounts{idle: 1000, speaking: 100, settle: 5 * time.Second},
			speakers: 50, cycles: 10000, hellos: 500, healthy: 49, segments: 30, window: 2 * time.Minute, profile: 20 * time.Second,
		}
	default:
		return amounts{
			press: pressAmounts{warm: 3, turns: 30, crowd: 50}, auto: autoAmounts{devices: 4, turns: 3},
			long:  replyAmounts{length: time.Minute, sentence: 10 * time.Second, short: 5},
			abort: abortAmounts{devices: 10, cuts: 10, cancels: 15}, barge: bargeAmounts{devices: 4, times: 2},
			density:  densityAmounts{least: 20, most: 80, step: 20, fine: 20},
			memory:   memoryAmounts{idle: 500, speaking: 50, settle: time.Second},
			speakers: 20, cycles: 200, hellos: 100, healthy: 49, segments: 10, window: 5 * time.Second, profile: 5 * time.Second,
		}
	}
}
