package account

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/postgrestest"
	"xiaozhi/store"
)

// cluster is the PostgreSQL of these tests.
var cluster postgrestest.Cluster

func TestMain(m *testing.M) {
	code := m.Run()
	cluster.Stop()
	os.Exit(code)
}

// place says where the empty database of a test is: in a file, and in PostgreSQL for the tests below [TestOnPostgres].
func place(t *testing.T, now func() time.Time) store.Options {
	t.Helper()
	if strings.HasPrefix(t.Name(), "TestOnPostgres/") {
		return store.Options{URL: cluster.URL(t), Now: now}
	}
	return store.Options{Path: filepath.Join(t.TempDir(), "x.db"), Now: now}
}

// TestOnPostgres: what is held of accounts in a file holds in PostgreSQL too.
func TestOnPostgres(t *testing.T) {
	for name, test := range map[string]func(t *testing.T){
		"setup": TestSetup, "session ends": TestSessionEnds, "last owner": TestLastOwner, "tokens": TestTokens, "invites": TestInvites,
		"guessing": TestGuessing, "another process": TestOtherProcess, "audit": TestAuditIsKeptForAYear, "bearers": TestBearers,
		"code once": TestCodeOnce, "second factor": TestSecondFactor,
	} {
		t.Run(name, test)
	}
}
