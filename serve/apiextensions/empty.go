package apiextensions

import (
	"context"
	"errors"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

const (
	// emptyFor is about how long objects are deleted at a time. Other definitions wait for that long.
	emptyFor = time.Second
	// continueAfter is how long the deletion pauses, and lookAgainAfter how long it waits before it looks again
	// for objects that finalizers keep or that were being created.
	continueAfter  = time.Millisecond
	lookAgainAfter = time.Second
	// emptyPage is how many objects are listed at a time to be deleted.
	emptyPage = 100
)

// empty deletes objects of the kind, and returns the time after which it is to be called again, zero if
// all are gone. Objects with finalizers stay, and so may objects that are being created.
func (k *kind) empty(ctx context.Context, clock engine.Clock) (again time.Duration, err error) {
	over := k.creations.end(clock.Now())
	if all, err := k.deleteSome(ctx, clock); err != nil || !all {
		return continueAfter, err
	}
	left, err := k.stores[0].Engine().List(ctx, engine.ListOptions{Limit: 1})
	if k.emptied = err == nil && over && len(left.Items) == 0; k.emptied {
		return 0, nil
	}
	return lookAgainAfter, err
}

// deleteSome deletes objects for about emptyFor, from the one after the last of the previous call on,
// and reports whether it has come to the end. It deletes at least one, however long that takes.
func (k *kind) deleteSome(ctx context.Context, clock engine.Clock) (all bool, err error) {
	s, until := k.stores[0], clock.Now().Add(emptyFor)
	for {
		page, err := s.Engine().List(ctx, engine.ListOptions{Start: k.last, Limit: emptyPage})
		if err != nil {
			return false, err
		}
		for _, o := range page.Items {
			if o.Key == k.last {
				continue // its finalizers keep it
			}
			_, _, err := s.Delete(ctx, o.Key, registry.DeleteOptions{})
			if err != nil && (!errors.Is(err, engine.ErrNotFound) || errors.As(err, new(*registry.AdmissionError))) {
				return false, err
			}
			k.last = o.Key
			if !clock.Now().Before(until) {
				return false, nil
			}
		}
		if page.Continue == "" {
			k.last = ""
			return true, nil
		}
	}
}
