package replay

import (
	"fmt"
	"slices"
)

// Via is how the watchers see the objects.
type Via uint8

const (
	// ViaWatch: each has a watch of what is selected.
	ViaWatch Via = iota
	// ViaObjectCache: each has a reference to every object that is selected, in
	// one of a few object caches over the engine. A cache follows each object by
	// itself, so one per watcher would measure nothing but that.
	ViaObjectCache
	// ViaInformer: each is a handler of one of a few informers over the engine,
	// and goes by what it is told.
	ViaInformer
)

var viaNames = []string{ViaWatch: "watch", ViaObjectCache: "objectcache", ViaInformer: "informer"}

// String returns the name that the flag has for it.
func (v Via) String() string {
	if int(v) < len(viaNames) {
		return viaNames[v]
	}
	return fmt.Sprintf("Via(%d)", uint8(v))
}

// UnmarshalText reads a name that String returns.
func (v *Via) UnmarshalText(text []byte) error {
	i := slices.Index(viaNames, string(text))
	if i < 0 {
		return fmt.Errorf("%q is no way to watch; there are %v", text, viaNames)
	}
	*v = Via(i)
	return nil
}
