package store

import (
	"sync/atomic"
	"unsafe"

	"k8s.io/apimachinery/pkg/labels"
)

// SizeOfLabels returns an estimator of the bytes of an object's labels beside those of
// its value. of is the function that the labels of objects come from. If it returns the
// object's map again, that map is a part of the value, in which it counts, or one that
// objects share, and takes no bytes of its own. If it returns another map, each object
// has one. The first object with labels decides that for all of them. If of is nil, each
// object has a map.
//
// The text of labels does not count, since it is most often that of the value. The
// estimator is safe for concurrent use.
func SizeOfLabels(of func(*Object) labels.Set) func(*Object) int {
	const (
		unknown int32 = iota
		shared
		own
	)
	var kind atomic.Int32
	return func(o *Object) int {
		if len(o.Labels) == 0 {
			return 0
		}
		if kind.Load() == unknown {
			decided := own
			if of != nil && sameMap(o.Labels, of(o)) {
				decided = shared
			}
			kind.CompareAndSwap(unknown, decided)
		}
		if kind.Load() == shared {
			return 0
		}
		return mapBytes(len(o.Labels), 2*int(unsafe.Sizeof("")))
	}
}
