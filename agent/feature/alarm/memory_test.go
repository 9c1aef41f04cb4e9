package alarm_test

import (
	"testing"

	"xiaozhi/agent/feature/alarm"
	"xiaozhi/agent/feature/alarm/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) alarm.Store { return alarm.NewMemory() })
}
