//go:build !unix

package connection

import "time"

// processTime is not known on this system.
func processTime() (used time.Duration, known bool) { return 0, false }
