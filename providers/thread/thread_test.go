package thread

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// address returns that of a function of the C library.
func address(t *testing.T, name string) uintptr {
	t.Helper()
	a, err := purego.Dlsym(purego.RTLD_DEFAULT, name)
	if err != nil {
		t.Skip(err)
	}
	return a
}

func started(t *testing.T) *Thread {
	t.Helper()
	th, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(th.Close)
	return th
}

// sortBy sorts numbers by the qsort of C, which asks less.
func sortBy(t *testing.T, th *Thread, all []int32, less func(a, b int32) uintptr) {
	t.Helper()
	value := func(p uintptr) int32 { return **(**int32)(unsafe.Pointer(&p)) }
	var pinned runtime.Pinner
	pinned.Pin(unsafe.SliceData(all))
	defer pinned.Unpin()
	th.Call(address(t, "qsort"), func(asked [Asked]uintptr) uintptr { return less(value(asked[0]), value(asked[1])) },
		uintptr(unsafe.Pointer(unsafe.SliceData(all))), uintptr(len(all)), unsafe.Sizeof(all[0]), Callback())
}

func compare(a, b int32) uintptr {
	switch {
	case a < b:
		return ^uintptr(0)
	case a > b:
		return 1
	}
	return 0
}

// TestCallback: what a C function asks is answered in Go, many times a call, by several threads side by side.
func TestCallback(t *testing.T) {
	for n := range 4 {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			th := started(t)
			for range 5 {
				all := make([]int32, 300)
				for i := range all {
					all[i] = rand.Int32()
				}
				sortBy(t, th, all, compare)
				if !slices.IsSorted(all) {
					t.Fatal("not in order")
				}
			}
		})
	}
}

// TestCallResult: arguments go in, and what the function returns comes back.
func TestCallResult(t *testing.T) {
	th := started(t)
	text := append([]byte("4711 and more"), 0)
	var pinned runtime.Pinner
	pinned.Pin(unsafe.SliceData(text))
	defer pinned.Unpin()
	if n := int32(th.Call(address(t, "atoi"), nil, uintptr(unsafe.Pointer(unsafe.SliceData(text))))); n != 4711 {
		t.Errorf("atoi returns %d", n)
	}
}

// TestPanicInCallback: a panic in an answer reaches the caller when the function has returned, and the thread goes on.
func TestPanicInCallback(t *testing.T) {
	th := started(t)
	func() {
		defer func() {
			if p := recover(); p != "at the third" {
				t.Errorf("recovered %v", p)
			}
		}()
		asked := 0
		sortBy(t, th, []int32{5, 4, 3, 2, 1}, func(a, b int32) uintptr {
			if asked++; asked == 3 {
				panic("at the third")
			}
			return compare(a, b)
		})
	}()
	all := []int32{3, 1, 2}
	sortBy(t, th, all, compare)
	if !slices.Equal(all, []int32{1, 2, 3}) {
		t.Errorf("sorted to %v", all)
	}
}

// TestThreadGivesWay: the thread is nicer than all others of the process, as Linux counts it.
func TestThreadGivesWay(t *testing.T) {
	nicer := func() (n int) {
		all, _ := filepath.Glob("/proc/self/task/*/stat")
		if len(all) == 0 {
			t.Skip("this system does not list threads")
		}
		for _, name := range all {
			raw, err := os.ReadFile(name)
			if err != nil {
				continue // it has ended
			}
			_, after, _ := strings.Cut(string(raw), ") ")
			if fields := strings.Fields(after); len(fields) > 16 && fields[16] != "0" { // nice: the 19th of proc_pid_stat(5)
				n++
			}
		}
		return n
	}
	before := nicer()
	th, err := New()
	if err != nil {
		t.Fatal(err)
	}
	th.Call(address(t, "labs"), nil, 1) // it has begun
	if n := nicer() - before; n != 1 {
		t.Errorf("%d threads give way", n)
	}
	th.Close()
}
