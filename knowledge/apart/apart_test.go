package apart

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/testall"
	"xiaozhi/knowledge/reader"
	"xiaozhi/knowledge/readertest"
)

// TestMain is the process that reads, where it was started for that. By the name of the document it misbehaves.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != Command {
		os.Exit(m.Run())
	}
	switch name := os.Args[len(os.Args)-1]; name {
	case "hangs":
		time.Sleep(time.Hour)
	case "panics":
		panic("a fault of a library")
	case "grows":
		go watchMemory(context.Background(), 96<<20)
		var all [][]byte
		for {
			all = append(all, make([]byte, 1<<20))
			for i := range all[len(all)-1] {
				all[len(all)-1][i] = 1
			}
		}
	case "spins":
		limit()
		limitCPU(0)
		for n := 0; ; n++ {
			runtime.KeepAlive(n)
		}
	case "babbles":
		for range 40 << 10 {
			_, _ = os.Stdout.WriteString(strings.Repeat("x", 1<<10))
		}
		os.Exit(exitOK)
	case "unable":
		_, _ = os.Stderr.WriteString("no memory for it")
		os.Exit(exitUnable)
	case "priority":
		limit()
		answer, _ := os.ReadFile("/proc/self/stat")
		_, _ = os.Stderr.WriteString(string(answer))
		os.Exit(exitFailed)
	}
	os.Exit(Main(context.Background(), os.Args[2:], os.Stdin, os.Stdout))
}

func file(t *testing.T, data []byte) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "document")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func own(t *testing.T) *Reader {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Reader{Program: []string{program}}
}

func TestRead(t *testing.T) {
	t.Parallel()
	d, err := own(t).Read(t.Context(), file(t, readertest.DOCX("# Care", "Clean the filter.")), "manual")
	if err != nil || d.Kind != reader.DOCX || len(d.Pieces) != 1 || d.Pieces[0].Text != "Clean the filter." || d.Pieces[0].Heading != "Care" {
		t.Errorf("%+v, %v", d, err)
	}
	_, err = own(t).Read(t.Context(), file(t, readertest.Zip("xl/a", "b")), "table")
	if f, detail := reader.FaultOf(err); f != reader.OtherKind || detail != "XLSX" {
		t.Errorf("a table: %v", err)
	}
}

// TestMisbehaving: whatever becomes of the process, there is one fault.
func TestMisbehaving(t *testing.T) {
	for name, want := range map[string]reader.Fault{"panics": reader.Broken, "babbles": reader.Broken, "grows": reader.Heavy, "spins": reader.Slow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if want == reader.Slow { // the shortest limit is a second
				testall.Only(t)
			}
			_, err := own(t).Read(t.Context(), file(t, []byte("x")), name)
			if e, ok := errors.AsType[*reader.FaultError](err); !ok || e.Fault != want {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// TestReadEnds: a process that hangs ends with who waits for it.
func TestReadEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := own(t).Read(ctx, file(t, []byte("x")), "hangs"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestUnable: that no process can read is no fault of the document.
func TestUnable(t *testing.T) {
	t.Parallel()
	if _, err := (&Reader{Program: []string{"/no/such/program"}}).Read(t.Context(), file(t, []byte("x")), ""); err == nil {
		t.Error("no program: no error")
	} else if _, ok := errors.AsType[*reader.FaultError](err); ok {
		t.Errorf("no program is said to be a fault of the document: %v", err)
	}
	_, err := own(t).Read(t.Context(), file(t, []byte("x")), "unable")
	if _, ok := errors.AsType[*reader.FaultError](err); ok || err == nil || !strings.Contains(err.Error(), "no memory for it") {
		t.Errorf("a process that cannot be made ready: %v", err)
	}
}

// TestPriority: reading gives way to all else.
func TestPriority(t *testing.T) {
	t.Parallel()
	_, err := own(t).Read(t.Context(), file(t, []byte("x")), "priority")
	if _, after, _ := strings.Cut(err.Error(), ") "); len(strings.Fields(after)) < 17 || strings.Fields(after)[16] != "19" { // proc(5): nice is field 19
		t.Errorf("priority: %v", err)
	}
}

// TestPDF: PDFium is translated once, and kept.
func TestPDF(t *testing.T) {
	testall.Only(t)
	r := own(t)
	r.Cache = t.TempDir()
	for range 2 {
		began := time.Now()
		d, err := r.Read(t.Context(), file(t, readertest.PDF(readertest.PDFOptions{}, "Clean the filter.")), "")
		if err != nil || len(d.Pieces) != 1 {
			t.Fatalf("%+v, %v", d, err)
		}
		t.Logf("read in %v", time.Since(began))
	}
}
