package lru_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"xiaozhi/internal/lru"
)

// keys names those of a to h that are there, without using them.
func keys(c *lru.Cache[string, int]) string {
	var b strings.Builder
	for _, k := range "abcdefgh" {
		if _, ok := c.Peek(string(k)); ok {
			b.WriteRune(k)
		}
	}
	return b.String()
}

func TestCacheEntries(t *testing.T) {
	c := lru.New[string, int](3, 0)
	for i, k := range []string{"a", "b", "c"} {
		c.Put(k, i, 1)
	}
	c.Get("a")
	c.Peek("b")
	c.Put("d", 3, 1)
	if got := keys(c); got != "acd" {
		t.Errorf("after a fourth: %s", got)
	}
	c.Put("c", 9, 1)
	c.Put("e", 4, 1)
	if v, ok := c.Get("c"); v != 9 || !ok || keys(c) != "cde" || c.Len() != 3 {
		t.Errorf("after a fifth: %s, c is %d", keys(c), v)
	}
}

func TestCacheWeight(t *testing.T) {
	c := lru.New[string, int](0, 10)
	c.Put("a", 0, 4)
	c.Put("b", 0, 4)
	c.Put("a", 1, 6)
	if got := keys(c); got != "ab" {
		t.Errorf("at the limit: %s", got)
	}
	c.Put("c", 0, 1)
	if got := keys(c); got != "ac" {
		t.Errorf("over the limit: %s", got)
	}
	c.Put("a", 2, 11)
	if got := keys(c); got != "c" {
		t.Errorf("after one that is too heavy: %s", got)
	}
}

func TestCacheUpdate(t *testing.T) {
	c := lru.New[string, []int](2, 0)
	for i := range 3 {
		c.Update("a", func(old []int) ([]int, int) { return append(old, i), 0 })
	}
	if got, _ := c.Get("a"); fmt.Sprint(got) != "[0 1 2]" {
		t.Errorf("got %v", got)
	}
}

func TestCacheConcurrent(t *testing.T) {
	c := lru.New[int, int](8, 64)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				c.Put((g+i)%16, i, i%9)
				c.Get(i % 16)
				c.Update(i%16, func(n int) (int, int) { return n + 1, 1 })
			}
		})
	}
	wg.Wait()
	if c.Len() > 8 {
		t.Errorf("%d entries", c.Len())
	}
}

func ExampleCache() {
	c := lru.New[string, string](2, 0)
	c.Put("a", "first", 0)
	c.Put("b", "second", 0)
	c.Get("a")
	c.Put("c", "third", 0)
	_, ok := c.Get("b")
	fmt.Println(c.Len(), ok)
	// Output: 2 false
}

func TestCacheRemove(t *testing.T) {
	c := lru.New[string, int](2, 10)
	c.Put("a", 1, 4)
	c.Put("b", 2, 4)
	c.Remove("a")
	c.Remove("none")
	if _, ok := c.Get("a"); ok || c.Len() != 1 {
		t.Errorf("%d entries", c.Len())
	}
	c.Put("c", 3, 6) // the weight of a is free
	if c.Len() != 2 {
		t.Errorf("%d entries", c.Len())
	}
}
