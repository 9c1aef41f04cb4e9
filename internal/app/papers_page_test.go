package app

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/roster"
	"xiaozhi/knowledge"
	"xiaozhi/knowledge/readertest"
)

// send posts files as a browser does, by pairs of name and content.
func (c *pageClient) send(path string, pairs ...string) *httptest.ResponseRecorder {
	c.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i+1 < len(pairs); i += 2 {
		w, err := form.CreateFormFile("file", pairs[i])
		if err == nil {
			_, err = w.Write([]byte(pairs[i+1]))
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		c.t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, path, &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Origin", "http://127.0.0.1:8000")
	r.Host, r.RemoteAddr = "127.0.0.1:8000", "127.0.0.1:9"
	for _, cookie := range c.cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return w
}

// read waits until all documents of an agent were read.
func read(t *testing.T, a *App, agent string) []knowledge.Document {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		all, waiting := a.outside.library.Documents(agent), false
		for _, d := range all {
			waiting = waiting || d.State == knowledge.Waiting
		}
		if !waiting {
			return all
		}
	}
	t.Fatal("documents are not read")
	return nil
}

// TestDocumentPages: documents are uploaded in the editor, listed with what is wrong with them, tried, read and deleted, without script, by
// the agent's owner and those of the server.
func TestDocumentPages(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "agents: {fixed: {language: en}}\n")
	defer a.Close()
	a.outside.library.Start()
	people := enter(t, a, h, map[string]account.Role{"ann": account.Owner, "bob": account.Member, "cat": account.Member, "vera": account.Viewer})
	ann, bob := people["ann"], people["bob"]
	bobs, err := a.stored.Users.Named(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.crew.roster.Set(t.Context(), roster.Author{Name: "bob", ID: bobs.ID}, "bobs?", []byte(`{"prompt":"default"}`)); err != nil {
		t.Fatal(err)
	}
	const page = "/console/agents/fixed/documents"
	ann.expect("/console/agents/fixed", nil, 200, `href="/console/agents/fixed/documents"`)
	ann.expect(page, nil, 200, "There are no documents yet")
	ann.expect("/console/agents/nobody/documents", nil, 404, "")
	script := `"><script>alert(1)</script>.txt`
	if w := ann.send(page, "fridge.md", "# Care\nClean the filter each month.", "table.docx", string(readertest.Zip("xl/x", "y")), script, "<script>alert(2)</script>"); w.Code != 303 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	read(t, a, "fixed")
	w := ann.ask(page, nil)
	for _, want := range []string{"fridge.md", "can be found", "XLSX is no kind of document that is read", "not read", "pieces: 1", `enctype="multipart/form-data"`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the page lacks %q: %s", want, w.Body)
		}
	}
	if strings.Contains(w.Body.String(), "<script>alert") {
		t.Error("a name is taken for HTML")
	}
	ann.expect(page+"?lang=zh", nil, 200, "读不了 XLSX 这种文件")
	delete(ann.cookies, "lang")
	ann.expect(page+"?try=how+do+I+clean+the+filter", nil, 200, "Clean the filter each month.")
	ann.expect(page+"?try=elephants", nil, 200, "Nothing about it was found.")
	ann.expect(page+"?list-q=fridge", nil, 200, "fridge.md")
	if w := ann.send(page); w.Code != 422 || !strings.Contains(w.Body.String(), "Choose at least one file.") {
		t.Errorf("no file: %d %s", w.Code, w.Body)
	}
	if w := ann.send(page, "empty.txt", ""); w.Code != 422 || !strings.Contains(w.Body.String(), "document is empty") {
		t.Errorf("an empty file: %d %s", w.Code, w.Body)
	}
	ann.expect(page, url.Values{"file": {"x"}}, 422, "Choose at least one file.")
	for _, d := range read(t, a, "fixed") {
		if d.Name == "fridge.md" {
			ann.expect(page+"/"+d.ID, nil, 200, "Clean the filter each month.")
			bob.expect(page+"/"+d.ID, nil, 403, "")
			bob.expect(page+"/"+d.ID, url.Values{}, 403, "")
		}
		ann.expect(page+"/"+d.ID, url.Values{}, 303, page)
		ann.expect(page+"/"+d.ID, nil, 404, "")
	}
	ann.expect(page, nil, 200, "There are no documents yet")

	bob.expect(page, nil, 403, "")
	const his = "/console/agents/bobs%3F/documents"
	bob.expect("/console/agents/bobs%3F", nil, 200, "Upload")
	bob.expect(his, nil, 200, `href="/console/agents/bobs%3F"`)
	if w := bob.send(his, "diary.txt", "dear diary"); w.Code != 303 {
		t.Errorf("a member uploads to his own: %d %s", w.Code, w.Body)
	}
	people["cat"].expect(his, nil, 403, "")
	people["vera"].expect(his, nil, 403, "")
	if w := people["cat"].send(his, "x.txt", "x"); w.Code != 403 {
		t.Errorf("a member uploads to another's: %d", w.Code)
	}
	if all := read(t, a, "bobs?"); len(all) != 1 || all[0].By != "bob" {
		t.Errorf("%+v", all)
	}
}

// TestDocumentRoutes: programs upload, list, read, search and delete documents.
func TestDocumentRoutes(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "agents: {fixed: {language: en}}\n")
	defer a.Close()
	a.outside.library.Start()
	a.web.guard.SetAdmin("0123456789abcdef")
	ask := func(method, path, body string) (int, map[string]any) {
		t.Helper()
		r := httptest.NewRequest(method, roster.Path+path, strings.NewReader(body))
		r.Host = "127.0.0.1:8000"
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var answer map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		return w.Code, answer
	}
	for _, test := range []struct {
		path, body string
		status     int
	}{{"/nobody/documents?name=x", "x", 404}, {"/fixed/documents", "x", 400}, {"/fixed/documents?name=x", "", 400}} {
		if status, answer := ask("PUT", test.path, test.body); status != test.status || answer["message"] == nil {
			t.Errorf("%s: %d %v", test.path, status, answer)
		}
	}
	status, made := ask("PUT", "/fixed/documents?name=..%2f..%2fetc%2Fpasswd", "The key is under the mat.")
	id, _ := made["id"].(string)
	if status != 202 || made["name"] != "passwd" || made["state"] != "waiting" || id == "" {
		t.Fatalf("%d %v", status, made)
	}
	read(t, a, "fixed")
	if status, all := ask("GET", "/fixed/documents", ""); status != 200 || len(all["documents"].([]any)) != 1 || all["documents"].([]any)[0].(map[string]any)["state"] != "ready" {
		t.Errorf("%d %v", status, all)
	}
	if status, one := ask("GET", "/fixed/documents/"+id, ""); status != 200 || one["text"].([]any)[0].(map[string]any)["text"] != "The key is under the mat." {
		t.Errorf("%d %v", status, one)
	}
	if status, found := ask("GET", "/fixed/search?q=where+is+the+key", ""); status != 200 || found["found"].([]any)[0].(map[string]any)["document"] != id {
		t.Errorf("%d %v", status, found)
	}
	for _, want := range []int{200, 404} {
		if status, answer := ask("DELETE", "/fixed/documents/"+id, ""); status != want {
			t.Errorf("deleted: %d %v", status, answer)
		}
	}
	if status, found := ask("GET", "/fixed/search?q=where+is+the+key", ""); status != 200 || len(found["found"].([]any)) != 0 {
		t.Errorf("%d %v", status, found)
	}
}
