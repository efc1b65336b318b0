package load

import (
	"errors"
	"fmt"
	"math"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/store"
)

// Validate returns what is wrong with the fields that say how the history is watched: an
// [engine.ConfigError] that names the field, or the error of the selector in Fields. It
// does not look at Changes, Resume and Save.
func (h *History) Validate() error {
	wrong := func(field, format string, args ...any) error {
		return &engine.ConfigError{Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case h.Watchers < 1:
		return wrong("Watchers", "is %d; give a number above zero", h.Watchers)
	case h.Slow < 0 || h.Slow > h.Watchers:
		return wrong("Slow", "is %d; give how many of the %d watchers are slow", h.Slow, h.Watchers)
	case int(h.Via) >= len(ViaNames):
		return wrong("Via", "is %v; give one of the values of Via, such as ViaWatch", h.Via)
	case h.Slow > 0 && !h.Via.Follows():
		return wrong("Slow", "is %d, but watchers by %s cannot be slow; leave it out, or give ViaWatch or ViaQueue", h.Slow, h.Via)
	case !h.Policy.Valid():
		return wrong("Policy", "is %v; give engine.Park, engine.Terminate or engine.Conflate", h.Policy)
	case h.Policy != engine.Park && !h.Via.Follows():
		return wrong("Policy", "is %v, but watchers by %s have no policy; leave it out, or give ViaWatch or ViaQueue", h.Policy, h.Via)
	case !(h.Speed >= 0) || math.IsInf(h.Speed, 1):
		return wrong("Speed", "is %v; give a factor above zero, or zero for as fast as possible", h.Speed)
	case h.Breaks < 0:
		return wrong("Breaks", "is %d; give how often each watcher disconnects, or zero", h.Breaks)
	case h.Window < 0:
		return wrong("Window", "is %d; give how many events the engine keeps, or zero for its default", h.Window)
	}
	_, err := h.filter()
	return err
}

// validateChanges refuses an empty history, since no part of it can have been written.
func (h *History) validateChanges() error {
	if len(h.Changes) == 0 {
		return &engine.ConfigError{Field: "Changes", Problem: "is empty; give at least one change"}
	}
	return nil
}

func (h *History) filter() (*store.Filter, error) {
	schema := content.Config(h.plan()).Schema()
	return store.NewFilter(schema.Fields, store.FilterOptions{Fields: h.Fields})
}

// ErrCannotContinue: a replay cannot be saved or continued with this storage, these
// watchers, or this history. The message says why.
var ErrCannotContinue = errors.New("the replay cannot be continued")

func cannotContinue(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrCannotContinue, fmt.Errorf(format, args...))
}

// continues reports whether the replay can extend over several processes.
func (h *History) continues() bool { return h.Resume != nil || h.Save != nil }

// validateSaved returns why the replay cannot be saved or continued, as far as that is
// known without its storage; nil if nothing is wrong.
func (h *History) validateSaved() error {
	switch {
	case !h.continues():
		return nil
	case !h.Via.Follows():
		return cannotContinue("watchers by %s have no revision to resume from", h.Via)
	case h.Resume != nil && len(h.Resume.Watchers) != h.Watchers:
		return cannotContinue("%d watchers were saved, and %d are to go on", len(h.Resume.Watchers), h.Watchers)
	}
	return nil
}

// validateTraits returns why the storage does not say how far the history was written; nil
// if it does, or if the replay is neither saved nor continued.
func (r *run) validateTraits() error {
	switch t := r.storage.Traits(); {
	case !r.history.continues():
		return nil
	case !t.KeepsHistory:
		return cannotContinue("the storage ends with the process")
	case !t.Contiguous || t.Shared:
		return cannotContinue("the storage has changes of others among its revisions")
	}
	return nil
}
