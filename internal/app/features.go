package app

import (
	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/alarm"
)

// features lists what conversations can do beside answering.
func features() []feature.Feature {
	return []feature.Feature{
		alarm.Feature{},
	}
}
