package tree

import (
	"sort"
	"strings"
)

// Count returns how many objects [View.All] returns. It takes O(log² n), and reads none of them.
func (v *View) Count(prefix, after string) int {
	if v == nil {
		return 0
	}
	items, n := partsOf(v).Items, 0
	if isPath(prefix) {
		if _, found := items.Get(prefix); found && prefix > after {
			n++
		}
		prefix += "/"
	}
	rank := func(reached func(key string) bool) int {
		return sort.Search(items.Len(), func(i int) bool {
			key, _, _ := items.GetAt(i)
			return reached(key)
		})
	}
	first := rank(func(key string) bool { return key >= prefix && key > after })
	end := rank(func(key string) bool { return key >= prefix && !strings.HasPrefix(key, prefix) })
	return n + max(0, end-first)
}
