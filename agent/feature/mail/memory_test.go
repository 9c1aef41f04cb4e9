package mail_test

import (
	"testing"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/mail/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) mail.Store { return mail.NewMemory() })
}
