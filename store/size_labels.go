package store

import (
	"sync/atomic"
	"unsafe"

	"k8s.io/apimachinery/pkg/labels"
)

// SizeOfLabels returns an estimator of the bytes of an object's labels in addition to
// those of its value. of is the function that returns the map of an object's labels; nil if they are
// values of [LabelNames] alone. If it returns the object's map again, that map is a part of
// the value, in which it counts, or one that objects share, and takes no bytes of its own.
// If it returns another map, each object has one. The first object with labels decides that
// for all of them.
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
		switch held := o.Labels.held.(type) {
		case nil:
			return 0
		case *labelValues:
			return held.bytes()
		}
		if kind.Load() == unknown {
			decided := own
			if of != nil && o.Labels.shares(LabelsOf(of(o))) {
				decided = shared
			}
			kind.CompareAndSwap(unknown, decided)
		}
		if kind.Load() == shared {
			return 0
		}
		return mapBytes(o.Labels.Len(), 2*int(unsafe.Sizeof("")))
	}
}
