package agent

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// TestMain has the transition function follow every conversation of these tests:
// whatever it would have done otherwise fails them.
func TestMain(m *testing.M) {
	var mu sync.Mutex
	differences := 0
	shadowReport = func(difference string) {
		mu.Lock()
		defer mu.Unlock()
		if differences++; differences <= 40 {
			fmt.Println("shadow:", difference)
		}
	}
	code := m.Run()
	if differences > 0 {
		fmt.Printf("the transition function differs %d times\n", differences)
		code = 1
	}
	os.Exit(code)
}
