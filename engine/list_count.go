package engine

import (
	"slices"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
)

// CacheLists counts the lists that the cache has served by one index, or by none.
type CacheLists struct {
	// Index is "f:" and the name of the field, or "l:" and that of the label, as the
	// Kubernetes API server names indexes; "" for lists by none of [Config]'s.
	Index string
	// Lists is how many there were, Fetched how many objects they have read, Returned how
	// many of those they had. A list fetches what its index, key or prefix leaves, up to
	// the first object after its page.
	Lists, Fetched, Returned uint64
}

// ConsistentLists counts the lists with [Latest] that the cache was asked for, by their
// outcome. Those that it was not asked for, since it was not ready, are not among them.
type ConsistentLists struct {
	// Served were served by the cache. Failed were not, without the backend being asked for
	// the list.
	Served, Failed uint64
	// FellBack were served by the backend, since the cache did not get there in time;
	// FallbackFailed failed there, too.
	FellBack, FallbackFailed uint64
}

// cacheLists are the counters of a [CacheLists].
type cacheLists struct{ lists, fetched, returned atomic.Uint64 }

// countList counts a list that the cache has served by an index.
func (e *core) countList(index store.Attribute, fetched, returned int) {
	c := &e.counts.cacheLists[1+slices.Index(e.cfg.indexes, index)] // the first is of no index
	c.lists.Add(1)
	c.fetched.Add(uint64(fetched))
	c.returned.Add(uint64(returned))
}

// cacheLists returns the counters of lists by each index, none without a cache.
func (e *core) cacheLists() []CacheLists {
	if !e.cfg.cached() {
		return nil
	}
	all := make([]CacheLists, len(e.counts.cacheLists))
	for i := range all {
		c := &e.counts.cacheLists[i]
		all[i] = CacheLists{Lists: c.lists.Load(), Fetched: c.fetched.Load(), Returned: c.returned.Load()}
		if i > 0 {
			all[i].Index = indexName(e.cfg.indexes[i-1])
		}
	}
	return all
}

func indexName(a store.Attribute) string {
	if a.Kind == store.Label {
		return "l:" + a.Name
	}
	return "f:" + a.Name
}

// consistentLists are the counters of a ConsistentLists.
type consistentLists struct{ served, failed, fellBack, fallbackFailed atomic.Uint64 }

func (c *consistentLists) add(success, fellBack bool) {
	counter := &c.failed
	switch {
	case success && fellBack:
		counter = &c.fellBack
	case success:
		counter = &c.served
	case fellBack:
		counter = &c.fallbackFailed
	}
	counter.Add(1)
}

func (c *consistentLists) load() ConsistentLists {
	return ConsistentLists{
		Served: c.served.Load(), Failed: c.failed.Load(),
		FellBack: c.fellBack.Load(), FallbackFailed: c.fallbackFailed.Load(),
	}
}
