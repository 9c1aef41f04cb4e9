package app

import (
	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/alarm"
	"xiaozhi/agent/feature/basics"
	"xiaozhi/agent/feature/job"
	"xiaozhi/agent/feature/music"
)

// features lists what conversations can do beside answering.
func features(reminders *alarm.Book, songs music.Library) []feature.Feature {
	return []feature.Feature{
		reminders,
		music.Feature{Library: songs},
		job.Feature{},
		basics.Feature{},
	}
}
