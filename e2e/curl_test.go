package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// curlName is the name by which the test program, linked to it, acts as curl:
// a machine that builds and tests this program need not have one.
const curlName = "curl"

// curlFolder makes a folder whose only program is [curlMain] under curl's name.
func curlFolder(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, curlName)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// curlMain does what the documents' curl lines ask for and returns the exit code.
func curlMain(args []string) int {
	if err := curl(args, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "curl:", err)
		return 1
	}
	return 0
}

// curl makes one request. It knows the options -s, -f, -X, -H and -d; any other
// is an error, and so is an answer of 400 or more where -f is given.
func curl(args []string, out io.Writer) error {
	method, body, url, fail := "", "", "", false
	header := http.Header{}
	for i := 0; i < len(args); i++ {
		option := args[i]
		if !strings.HasPrefix(option, "-") {
			if url != "" {
				return errors.New("two addresses")
			}
			url = option
			continue
		}
		if strings.Trim(option, "-sf") == "" {
			fail = fail || strings.Contains(option, "f")
			continue
		}
		if i++; i == len(args) {
			return fmt.Errorf("%s lacks its value", option)
		}
		switch option {
		case "-X":
			method = args[i]
		case "-d":
			body = args[i]
		case "-H":
			name, value, ok := strings.Cut(args[i], ":")
			if !ok {
				return fmt.Errorf("no header: %q", args[i])
			}
			header.Set(name, strings.TrimSpace(value))
		default:
			return fmt.Errorf("option %s is not known here", option)
		}
	}
	if method == "" && body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if fail && resp.StatusCode >= http.StatusBadRequest {
		return errors.New(resp.Status)
	}
	_, err = io.Copy(out, resp.Body)
	return err
}
