package device

import "time"

const (
	maxQueue       = 64                     // payloads waiting for the session; more are dropped
	maxQueued      = 4 << 20                // bytes waiting for the session; more are dropped
	maxPages       = 32                     // pages of one tools/list (docs/protocol.md 5.3)
	maxBlocks      = 64                     // content blocks of one result
	maxID          = 1<<31 - 1              // firmware reads ids into 32 bits (docs/protocol.md 5.1)
	maxLate        = 64                     // given-up requests whose late reply is still recognised
	maxLogged      = 256                    // bytes of a device's error in the log
	requestTimeout = 15 * time.Second       // of initialize and of one page of tools/list
	relistPause    = time.Second            // between two lists that the device asked for
	relistGather   = 100 * time.Millisecond // for further signs that the list has changed
)
