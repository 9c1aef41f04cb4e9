package app

import (
	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/alarm"
	"xiaozhi/agent/feature/basics"
	"xiaozhi/agent/feature/job"
	"xiaozhi/agent/feature/music"
)

// features lists what conversations can do beside answering.
func features(songs music.Library) []feature.Feature {
	return []feature.Feature{
		alarm.Feature{},
		music.Feature{Library: songs},
		job.Feature{},
		basics.Feature{},
	}
}
