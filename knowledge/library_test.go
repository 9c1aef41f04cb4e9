package knowledge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/knowledge/reader"
	"xiaozhi/knowledge/readertest"
)

// shelf is a library over a folder.
type shelf struct {
	*Library
	t      *testing.T
	store  Store
	dir    string // of the agent home
	data   string
	always map[string][]string

	mu    sync.Mutex
	reads []string
	gate  chan struct{} // reading waits for it; nil: it does not
	ids   int
}

func newShelf(t *testing.T, store Store) *shelf {
	t.Helper()
	s := &shelf{t: t, store: store, dir: t.TempDir(), data: t.TempDir()}
	s.always = map[string][]string{"home": {s.dir}}
	return s
}

func (s *shelf) options() Options {
	r := reader.New(reader.Options{Interpret: true})
	return Options{
		Store: s.store, Folders: func() map[string][]string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.always
		}, Incoming: filepath.Join(s.data, "incoming"),
		NewID: func() string {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ids++
			return fmt.Sprintf("doc-%03d", s.ids)
		},
		Read: func(ctx context.Context, f *os.File, name string) (reader.Document, error) {
			s.mu.Lock()
			s.reads = append(s.reads, name)
			gate := s.gate
			s.mu.Unlock()
			if gate != nil {
				<-gate
			}
			info, err := f.Stat()
			if err != nil {
				return reader.Document{}, err
			}
			return r.Read(ctx, f, info.Size(), name)
		},
	}
}

// open has a library begin, and waits until it rests; end ends it.
func (s *shelf) open(change func(*Options)) (end func()) {
	s.t.Helper()
	end = s.begin(change)
	s.settle()
	return end
}

func (s *shelf) begin(change func(*Options)) (end func()) {
	s.t.Helper()
	o := s.options()
	if change != nil {
		change(&o)
	}
	l, err := Open(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Library = l
	l.Start()
	synctest.Wait()
	return l.Close
}

// settle waits until the library rests.
func (s *shelf) settle() {
	time.Sleep(40 * time.Second)
	synctest.Wait()
}

func (s *shelf) write(name string, data string) {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte(data), 0o600)
	}
	if err == nil {
		err = os.Chtimes(file, time.Time{}, time.Now().Add(-time.Minute))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// taken returns what was read since it was asked last.
func (s *shelf) taken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.reads)
	all := strings.Join(s.reads, " ")
	s.reads = nil
	return all
}

// lists writes the documents of an agent.
func (s *shelf) lists(agent string) string {
	var b strings.Builder
	for _, d := range s.Documents(agent) {
		fmt.Fprintf(&b, "%s %s", d.Name, d.State)
		if d.Fault != "" {
			fmt.Fprintf(&b, " %s%s", d.Fault, d.Detail)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// finds lists the names of documents that answer a query.
func (s *shelf) finds(agent, query string) string {
	s.t.Helper()
	found, err := s.Search(s.t.Context(), agent, query, 2000)
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, f := range found {
		names = append(names, f.Document.Name)
	}
	return strings.Join(names, " ")
}

func inBubble(t *testing.T, f func(t *testing.T, s *shelf)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newShelf(t, NewMemory())) })
}

// TestFolder: files are read once, changed ones again, moved ones not; deleted ones are forgotten.
func TestFolder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		s.write("fridge.md", "# Care\nClean the filter of the fridge each month.")
		s.write("papers/washer.txt", "洗衣机的滤网每个月清洗一次。")
		s.write(".hidden.txt", "filter")
		s.write("photo.jpg", "filter")
		defer s.open(nil)()
		if got := s.lists("home"); got != "fridge.md ready\npapers/washer.txt ready\n" {
			t.Fatalf("the documents are\n%s", got)
		}
		if got := s.taken(); got != "fridge.md papers/washer.txt" {
			t.Errorf("read: %s", got)
		}
		if f := s.Folders("home"); len(f) != 1 || f[0].Others != 1 || f[0].Err != nil {
			t.Errorf("the folder: %+v", f)
		}
		if got := s.finds("home", "how do I clean the filter"); got != "fridge.md" {
			t.Errorf("found %s", got)
		}
		if got := s.finds("home", "滤网多久洗一次"); got != "papers/washer.txt" {
			t.Errorf("found %s", got)
		}

		now := time.Now()
		if err := os.Chtimes(filepath.Join(s.dir, "fridge.md"), now, now.Add(-30*time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(s.dir, "papers"), filepath.Join(s.dir, "kept")); err != nil {
			t.Fatal(err)
		}
		id := s.Documents("home")[1].ID
		s.settle()
		if got, list := s.taken(), s.lists("home"); got != "" || list != "fridge.md ready\nkept/washer.txt ready\n" || s.Documents("home")[1].ID != id {
			t.Errorf("a file that moved, and one with another time, were read: %q\n%s", got, list)
		}
		if got := s.finds("home", "滤网多久洗一次"); got != "kept/washer.txt" {
			t.Errorf("found %s", got)
		}

		s.write("fridge.md", "# Care\nThe lamp is of type E14.")
		s.settle()
		if got := s.taken(); got != "fridge.md" {
			t.Errorf("read: %s", got)
		}
		if filter, lamp := s.finds("home", "clean the filter"), s.finds("home", "what type is the lamp"); filter != "" || lamp != "fridge.md" {
			t.Errorf("filter: %q, lamp: %q", filter, lamp)
		}

		if err := os.Remove(filepath.Join(s.dir, "kept", "washer.txt")); err != nil {
			t.Fatal(err)
		}
		s.settle()
		if got := s.lists("home"); got != "fridge.md ready\n" || s.finds("home", "滤网") != "" {
			t.Errorf("a deleted file is not forgotten:\n%s", got)
		}
		s.mu.Lock()
		s.always = map[string][]string{}
		s.mu.Unlock()
		s.settle()
		if got := s.lists("home"); got != "" || s.finds("home", "lamp") != "" || s.Has("home") {
			t.Errorf("the documents of a folder that was taken away are still there:\n%s", got)
		}
	})
}

// TestSilentChange: a file that changes without any sign of it is read again in time.
func TestSilentChange(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		s.write("a.txt", "the lamp is red")
		at := time.Now().Add(-time.Hour)
		same := func() {
			if err := os.Chtimes(filepath.Join(s.dir, "a.txt"), at, at); err != nil {
				t.Fatal(err)
			}
		}
		same()
		defer s.open(nil)()
		s.write("a.txt", "the lamp is big")
		same()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if got := s.finds("home", "big lamp"); got != "a.txt" {
			t.Errorf("found %q", got)
		}
		if d, pieces, err := s.Document(t.Context(), "home", s.Documents("home")[0].ID); err != nil || len(pieces) != 1 || pieces[0].Text != "the lamp is big" {
			t.Errorf("%+v %+v %v", d, pieces, err)
		}
	})
}

// TestOddFiles: whatever is in a folder, the rest is read.
func TestOddFiles(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		s.write("good.txt", "The key is under the mat.")
		s.write("binary.txt", "a\x00b\x01\x02")
		s.write("empty.txt", "")
		s.write("locked.docx", "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"+strings.Join(strings.Split("EncryptedPackage", ""), "\x00")+"\x00")
		s.write("table.docx", string(readertest.Zip("xl/workbook.xml", "x")))
		secret := filepath.Join(s.data, "secret.txt")
		large, err := os.Create(filepath.Join(s.dir, "large.txt"))
		if err == nil {
			err = errors.Join(large.Truncate(500<<20), large.Close(), os.WriteFile(secret, []byte("the secret word"), 0o600),
				os.Symlink(secret, filepath.Join(s.dir, "out.txt")), os.Symlink("/etc", filepath.Join(s.dir, "etc")), os.Symlink(".", filepath.Join(s.dir, "again")),
				os.Symlink("good.txt", filepath.Join(s.dir, "within.txt")), syscall.Mkfifo(filepath.Join(s.dir, "pipe.txt"), 0o600), os.Mkdir(filepath.Join(s.dir, "a folder.txt"), 0o700),
				os.WriteFile(filepath.Join(s.dir, "\xb2\xe2.txt"), []byte("x"), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer s.open(nil)()
		want := "binary.txt failed binary\nempty.txt failed empty\ngood.txt ready\nlarge.txt failed large\nlocked.docx failed encrypted\nout.txt failed outside\ntable.docx failed kindXLSX\nwithin.txt ready\n"
		if got := s.lists("home"); got != want {
			t.Errorf("the documents are\n%swant\n%s", got, want)
		}
		if got := s.finds("home", "secret word"); got != "" {
			t.Errorf("found %s", got)
		}
		if f := s.Folders("home")[0]; !errors.Is(f.Err, ErrFileName) {
			t.Errorf("the folder: %+v", f)
		}
		s.taken()
		s.settle()
		if got := s.taken(); got != "" {
			t.Errorf("read again: %s", got)
		}
	})
}

// TestReadAgain: what was too much is read when there is room again, and what took too long when somebody touches it; until then neither is
// read all the time.
func TestReadAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		s.write("a.txt", "The key is under the mat.")
		slow := true
		defer s.open(func(o *Options) {
			read := o.Read
			o.Read = func(ctx context.Context, f *os.File, name string) (reader.Document, error) {
				d, err := read(ctx, f, name)
				s.mu.Lock()
				defer s.mu.Unlock()
				if slow {
					return reader.Document{}, &reader.FaultError{Fault: reader.Slow}
				}
				return d, err
			}
		})()
		s.mu.Lock()
		slow = false
		s.mu.Unlock()
		s.taken()
		s.settle()
		if got := s.taken(); got != "" || s.lists("home") != "a.txt failed slow\n" {
			t.Errorf("read: %q\n%s", got, s.lists("home"))
		}
		if err := os.Chtimes(filepath.Join(s.dir, "a.txt"), time.Time{}, time.Now().Add(-50*time.Second)); err != nil {
			t.Fatal(err)
		}
		s.settle()
		if got := s.lists("home"); got != "a.txt ready\n" {
			t.Errorf("after a touch: %s", got)
		}

		crowd := func(n int) {
			s.kept.mu.Lock()
			defer s.kept.mu.Unlock()
			s.kept.indexed += n
		}
		crowd(maxIndexes - 300)
		s.write("b.txt", "The lamp is red.")
		s.settle()
		if got := s.lists("home"); got != "a.txt ready\nb.txt failed full\n" || s.finds("home", "lamp") != "" {
			t.Errorf("without room: %s", got)
		}
		crowd(-1000)
		s.taken()
		s.settle()
		if got := s.taken(); got != "" {
			t.Errorf("read with hardly any room: %s", got)
		}
		crowd(1300 - maxIndexes)
		s.settle()
		if got := s.lists("home"); got != "a.txt ready\nb.txt ready\n" || s.finds("home", "lamp") != "b.txt" {
			t.Errorf("with room again: %s", got)
		}
	})
}

// TestFresh: a file that is still being written is left for the next look.
func TestFresh(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		s.write("fresh.txt", "The key is under the mat.")
		if err := os.Chtimes(filepath.Join(s.dir, "fresh.txt"), time.Time{}, time.Now()); err != nil {
			t.Fatal(err)
		}
		defer s.begin(nil)()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := s.taken(); got != "" {
			t.Errorf("read at once: %s", got)
		}
		s.settle()
		if got := s.taken(); got != "fresh.txt" {
			t.Errorf("read: %s", got)
		}
	})
}

// TestFolderGone: a disk that is not there takes nothing away; a folder that stays empty does.
func TestFolderGone(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		s.write("a.txt", "The key is under the mat.")
		defer s.open(nil)()
		away := s.dir + ".away"
		if err := os.Rename(s.dir, away); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if f := s.Folders("home")[0]; f.Err == nil || s.finds("home", "key") != "a.txt" {
			t.Errorf("a folder that is not there: %+v", f)
		}
		if err := os.Mkdir(s.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if s.finds("home", "key") != "a.txt" {
			t.Error("a folder that is suddenly empty is believed")
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if s.finds("home", "key") != "" || s.lists("home") != "" {
			t.Error("a folder that stays empty is not believed")
		}
	})
}

func TestUpload(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		defer s.open(nil)()
		put := func(name, data string) (Document, error) {
			return s.Upload(t.Context(), "home", "anna", name, strings.NewReader(data))
		}
		d, err := put(`C:\papers\..\..\note 1.txt`, "The key is under the mat.")
		if err != nil || d.Name != "note 1.txt" || d.State != Waiting || !d.Uploaded() || d.By != "anna" {
			t.Fatalf("%+v, %v", d, err)
		}
		s.settle()
		if got := s.lists("home"); got != "note 1.txt ready\n" || s.finds("home", "where is the key") != "note 1.txt" {
			t.Fatalf("the documents are\n%s", got)
		}
		if left, err := os.ReadDir(filepath.Join(s.data, "incoming")); err != nil || len(left) != 0 {
			t.Errorf("left of uploads: %v, %v", left, err)
		}
		if again, err := put("note 1.txt", "The key is under the mat."); err != nil || again.ID != d.ID || again.State != Ready {
			t.Errorf("the same again: %+v, %v", again, err)
		}
		other, err := put("note 1.txt", "The key is in the shed.")
		if err != nil || other.ID != d.ID || other.State != Waiting {
			t.Errorf("another of that name: %+v, %v", other, err)
		}
		s.settle()
		found, err := s.Search(t.Context(), "home", "where is the key", 1000)
		if err != nil || len(found) != 1 || found[0].Piece.Text != "The key is in the shed." {
			t.Errorf("found %+v, %v", found, err)
		}
		for _, test := range []struct {
			body io.Reader
			want error
		}{{strings.NewReader(""), ErrEmpty}, {io.LimitReader(forever{}, 200<<20), ErrLarge}, {broken{}, io.ErrUnexpectedEOF}} {
			if _, err := s.Upload(t.Context(), "home", "", "x", test.body); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		}
		if err := s.Delete(t.Context(), "other", d.ID); !errors.Is(err, ErrUnknown) {
			t.Errorf("another agent deletes it: %v", err)
		}
		if err := s.Delete(t.Context(), "home", d.ID); err != nil {
			t.Error(err)
		}
		if s.lists("home") != "" || s.finds("home", "key") != "" {
			t.Error("a deleted upload is there")
		}
		left, err := os.ReadDir(filepath.Join(s.data, "incoming"))
		if err != nil || len(left) != 0 {
			t.Errorf("left of uploads: %v, %v", left, err)
		}
	})
}

type forever struct{}

func (forever) Read(p []byte) (int, error) { return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestNameOf(t *testing.T) {
	for name, want := range map[string]string{
		"a.pdf": "a.pdf", "": "document", "..": "document", "/etc/passwd": "passwd", "a\x00b\n.txt": "a b .txt", "说明书.docx": "说明书.docx", "\xff.txt": "?.txt",
		strings.Repeat("长", 100) + ".pdf": strings.Repeat("长", 64) + "….pdf",
	} {
		if got := nameOf(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestDeletedWhileRead: an upload that is deleted, or replaced, while it is read does not come back.
func TestDeletedWhileRead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		defer s.open(nil)()
		s.mu.Lock()
		s.gate = make(chan struct{})
		s.mu.Unlock()
		gone, err := s.Upload(t.Context(), "home", "", "gone.txt", strings.NewReader("one"))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := s.Delete(t.Context(), "home", gone.ID); err != nil {
			t.Fatal(err)
		}
		s.gate <- struct{}{}
		if _, err := s.Upload(t.Context(), "home", "", "new.txt", strings.NewReader("old words")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := s.Upload(t.Context(), "home", "", "new.txt", strings.NewReader("fresh words")); err != nil {
			t.Fatal(err)
		}
		close(s.gate)
		s.settle()
		if got := s.lists("home"); got != "new.txt ready\n" {
			t.Errorf("the documents are\n%s", got)
		}
		if _, pieces, err := s.Document(t.Context(), "home", s.Documents("home")[0].ID); err != nil || len(pieces) != 1 || pieces[0].Text != "fresh words" {
			t.Errorf("%+v, %v", pieces, err)
		}
		if all, _, _ := s.store.List(t.Context()); len(all) != 1 {
			t.Errorf("the store has %+v", all)
		}
	})
}

// TestRestart: after a restart everything is found without being read again; what waited is read.
func TestRestart(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		s.write("a.txt", "The key is under the mat.")
		end := s.open(nil)
		s.mu.Lock()
		s.gate = make(chan struct{})
		s.mu.Unlock()
		if _, err := s.Upload(t.Context(), "home", "", "late.txt", strings.NewReader("The lamp is red.")); err != nil {
			t.Fatal(err)
		}
		lost, err := s.Upload(t.Context(), "home", "", "lost.txt", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		close(s.gate)
		end()
		if err := os.Remove(filepath.Join(s.data, "incoming", lost.ID)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		s.taken()
		s.gate = nil
		defer s.open(nil)()
		if s.finds("home", "key") != "a.txt" || s.finds("home", "lamp") != "late.txt" || strings.Contains(s.taken(), "a.txt") {
			t.Errorf("after a restart: %s", s.lists("home"))
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if got := s.lists("home"); !strings.Contains(got, "lost.txt failed lost\n") && !strings.Contains(got, "lost.txt ready\n") {
			t.Errorf("after a restart:\n%s", got)
		}
	})
}

// TestIsolation: no agent finds what is another's.
func TestIsolation(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		for i := range 20 {
			agent, dir := fmt.Sprintf("agent%d", i), t.TempDir()
			s.always[agent] = []string{dir}
			if err := os.WriteFile(filepath.Join(dir, "secret.txt"), []byte(fmt.Sprintf("The secret number of everybody is token%d.", i)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		defer s.open(nil)()
		s.settle()
		for i := range 20 {
			agent := fmt.Sprintf("agent%d", i)
			found, err := s.Search(t.Context(), agent, "the secret number of everybody is token", 10000)
			if err != nil || len(found) != 1 || !strings.HasSuffix(found[0].Piece.Text, fmt.Sprintf("token%d.", i)) {
				t.Errorf("%s finds %+v, %v", agent, found, err)
			}
			other := s.Documents(fmt.Sprintf("agent%d", (i+1)%20))[0]
			if _, _, err := s.Document(t.Context(), agent, other.ID); !errors.Is(err, ErrUnknown) {
				t.Errorf("%s gets another's: %v", agent, err)
			}
		}
		if got := s.finds("home", "secret number"); got != "" || s.Has("home") || s.Has("nobody") {
			t.Errorf("an agent without documents finds %s", got)
		}
		if err := s.Drop(t.Context(), "agent3"); err != nil || s.Has("agent3") || !s.Has("agent4") {
			t.Errorf("drop: %v", err)
		}
	})
}

// TestAnotherServer: what another server changes in a store that both have is found here.
func TestAnotherServer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		defer s.open(nil)()
		other := newShelf(t, s.store)
		other.always, other.ids = map[string][]string{"home": {s.dir}}, 500
		defer other.open(nil)()
		d, err := other.Upload(t.Context(), "home", "", "note.txt", strings.NewReader("The key is under the mat."))
		if err != nil {
			t.Fatal(err)
		}
		s.write("both.txt", "The lamp is red.")
		s.settle()
		s.settle()
		for _, here := range []*shelf{s, other} {
			if got := here.lists("home"); got != "note.txt ready\nboth.txt ready\n" || here.finds("home", "key") != "note.txt" || here.finds("home", "lamp") != "both.txt" {
				t.Errorf("the documents are\n%s", got)
			}
		}
		if err := s.Delete(t.Context(), "home", d.ID); err != nil {
			t.Fatal(err)
		}
		s.settle()
		if got := other.finds("home", "key"); got != "" {
			t.Errorf("found %s", got)
		}
	})
}

// meanings is an embedder to which words of one meaning are alike.
type meanings struct{ fail bool }

func (*meanings) Model() string { return "meanings-1" }

func (m *meanings) Embed(_ context.Context, texts []string, _ bool) ([][]float32, error) {
	if m.fail {
		return nil, errors.New("not now")
	}
	var all [][]float32
	for _, s := range texts {
		v := make([]float32, 8)
		for i, words := range []string{"car automobile 汽车", "food supper 晚饭", "key 钥匙"} {
			for w := range strings.FieldsSeq(words) {
				if strings.Contains(strings.ToLower(s), w) {
					v[i] = 1
				}
			}
		}
		v[7] = 0.1
		all = append(all, v)
	}
	return all, nil
}

func TestMeaning(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		m := &meanings{}
		with := func(o *Options) { o.Embedder = func() Embedder { return m } }
		s.write("a.txt", "The automobile needs oil.")
		s.write("b.txt", "We eat supper at six.")
		end := s.open(with)
		if got := s.finds("home", "汽车"); got != "a.txt" {
			t.Errorf("by meaning: %q", got)
		}
		if got := s.finds("home", "oil and supper"); !strings.HasPrefix(got, "b.txt") || !strings.Contains(got, "a.txt") {
			t.Errorf("by both: %q", got)
		}
		end()
		m.fail = true
		defer s.open(with)()
		if got := s.finds("home", "oil"); got != "a.txt" {
			t.Errorf("by words alone: %q", got)
		}
		m.fail = false
		if got := s.finds("home", "汽车"); got != "a.txt" {
			t.Errorf("by vectors that were kept: %q", got)
		}
	})
}

func TestQuantise(t *testing.T) {
	a, b := []float32{0.6, -0.8, 0, 0.001}, []float32{-0.6, 0.8, 0.1, 0}
	if got := dot(quantise(a), quantise(b)); got > -0.98 || got < -1.02 {
		t.Errorf("got %v", got)
	}
	if got := dot(quantise(make([]float32, 4)), quantise(a)); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// TestBudget: what is found has no more characters than asked for.
func TestBudget(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf) {
		s.write("a.txt", strings.Repeat("钥匙在门垫下面。", 500))
		s.write("copy.txt", strings.Repeat("钥匙在门垫下面。", 500))
		defer s.open(nil)()
		for _, chars := range []int{100, 700, 3000} {
			found, err := s.Search(t.Context(), "home", "钥匙在哪里", chars)
			size, seen := 0, map[string]bool{}
			for _, f := range found {
				size += len([]rune(f.Piece.Text))
				if seen[f.Piece.Text] {
					t.Errorf("twice: %.20s", f.Piece.Text)
				}
				seen[f.Piece.Text] = true
			}
			if err != nil || size > chars || size < chars/4 || len(found) == 0 {
				t.Errorf("%d characters of %d, %v", size, chars, err)
			}
		}
	})
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte{2, 4, 7, 9})
	f.Add(bytes.Repeat([]byte{0xff}, 20))
	f.Fuzz(func(t *testing.T, list []byte) {
		n := 0
		unpack(list, func(int, int) { n++ })
		if n > len(list) {
			t.Errorf("%d of %d bytes", n, len(list))
		}
	})
}
