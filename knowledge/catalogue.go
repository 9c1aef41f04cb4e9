package knowledge

import (
	"maps"
	"slices"
	"sync"
)

// catalogue holds what is known of documents and folders, and the indexes. Its methods may be called at the same time.
type catalogue struct {
	mu      sync.RWMutex
	all     map[string]map[string]*entry // by agent, then by id
	indexed int                          // bytes of the indexes
	folders map[folderKey]Folder         // as they were seen last
}

// entry is a document with its index; nil: it cannot be found. It does not change.
type entry struct {
	document Document
	index    *index
}

type folderKey struct{ agent, path string }

func newCatalogue() *catalogue {
	return &catalogue{all: map[string]map[string]*entry{}, folders: map[folderKey]Folder{}}
}

// set puts a document in the place of what was known of it.
func (c *catalogue) set(d Document, x *index) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(d.Agent, d.ID)
	if c.all[d.Agent] == nil {
		c.all[d.Agent] = map[string]*entry{}
	}
	c.all[d.Agent][d.ID] = &entry{d, x}
	if x != nil {
		c.indexed += x.size()
	}
}

// note changes what is known of a document whose index stays.
func (c *catalogue) note(d Document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.all[d.Agent][d.ID]; e != nil {
		c.all[d.Agent][d.ID] = &entry{d, e.index}
	}
}

// setVectors gives a document's index its vectors, if there is one.
func (c *catalogue) setVectors(d Document, of [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.all[d.Agent][d.ID]; old != nil && old.index != nil {
		x := old.index.withVectors(of)
		c.indexed += x.size() - old.index.size()
		c.all[d.Agent][d.ID] = &entry{d, x}
	}
}

func (c *catalogue) remove(agent, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(agent, id)
}

// take takes a document out. The caller holds mu.
func (c *catalogue) take(agent, id string) {
	e := c.all[agent][id]
	if e == nil {
		return
	}
	if e.index != nil {
		c.indexed -= e.index.size()
	}
	if delete(c.all[agent], id); len(c.all[agent]) == 0 {
		delete(c.all, agent)
	}
}

// document returns a document of an agent.
func (c *catalogue) document(agent, id string) (Document, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e := c.all[agent][id]; e != nil {
		return e.document, true
	}
	return Document{}, false
}

// documents lists those of an agent.
func (c *catalogue) documents(agent string) (all []Document) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, e := range c.all[agent] {
		all = append(all, e.document)
	}
	return byName(all)
}

// has reports whether something can be found in documents of an agent.
func (c *catalogue) has(agent string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, e := range c.all[agent] {
		if e.document.Pieces > 0 {
			return true
		}
	}
	return false
}

// agents lists those that have documents.
func (c *catalogue) agents() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Sorted(maps.Keys(c.all))
}

// missing lists documents that can be read in the store, and not yet be found.
func (c *catalogue) missing() (all []Document) {
	return c.those(func(e *entry) bool { return e.index == nil && e.document.Pieces > 0 })
}

// waiting lists uploads that are to be read.
func (c *catalogue) waiting() (all []Document) {
	return c.those(func(e *entry) bool { return e.document.Uploaded() && e.document.State == Waiting })
}

// those lists documents of all agents.
func (c *catalogue) those(are func(e *entry) bool) (all []Document) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, entries := range c.all {
		for _, e := range entries {
			if are(e) {
				all = append(all, e.document)
			}
		}
	}
	return byName(all)
}

// room returns how many bytes of indexes there is room for.
func (c *catalogue) room() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return maxIndexes - c.indexed
}

// volumes returns the indexes of an agent.
func (c *catalogue) volumes(agent string) []volume {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]volume, 0, len(c.all[agent]))
	for _, id := range slices.Sorted(maps.Keys(c.all[agent])) {
		if x := c.all[agent][id].index; x != nil {
			all = append(all, volume{id, x})
		}
	}
	return all
}

// folder returns a folder as it was seen last.
func (c *catalogue) folder(key folderKey) Folder {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.folders[key]
}

func (c *catalogue) setFolder(key folderKey, f Folder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.folders[key] = f
}

// keepFolders forgets all folders but those of agents.
func (c *catalogue) keepFolders(of map[string][]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.folders, func(key folderKey, _ Folder) bool { return !slices.Contains(of[key.agent], key.path) })
}
