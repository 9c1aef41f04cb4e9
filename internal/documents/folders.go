package documents

import (
	"os"
	"path/filepath"
	"strings"
)

// Names of what the data folder has of documents.
const (
	Folder   = "knowledge"         // a folder for each agent that people make there
	incoming = "knowledge-uploads" // what was uploaded, until it is read
)

// Incoming returns the folder in a data folder in which uploads wait.
func Incoming(data string) string { return filepath.Join(data, incoming) }

// FoldersOf returns the folders of documents of agents: those that set names for one, else the one in the data folder that is called
// like it, if it is there.
func FoldersOf(agents []string, set func(agent string) []string, data string) map[string][]string {
	all := map[string][]string{}
	for _, name := range agents {
		for _, folder := range set(name) {
			if folder, err := filepath.Abs(folder); err == nil {
				all[name] = append(all[name], folder)
			}
		}
		if len(all[name]) > 0 || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
			continue
		}
		own := filepath.Join(data, Folder, name)
		if info, err := os.Stat(own); err == nil && info.IsDir() {
			all[name] = []string{own}
		}
	}
	return all
}
