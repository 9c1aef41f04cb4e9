package identity_test

import (
	"testing"

	"xiaozhi/connection/identity"
	"xiaozhi/connection/identity/recordstest"
)

func TestMemory(t *testing.T) {
	m := identity.NewMemory()
	recordstest.Run(t, func(*testing.T) identity.Records { return m })
}
