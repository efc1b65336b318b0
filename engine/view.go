package engine

import (
	"slices"
	"strconv"
	"strings"
)

// View shows an engine, or the engine of a topic, without its object type. [Host.Engines]
// returns it. It may be used after the engine was closed.
type View struct{ core viewCore }

// viewCore is what View shows of a *core. It is an interface because all
// generic code that a public type leads to is compiled with the user's package.
type viewCore interface {
	settings() *settings
	id() string
	windowLimits() Window
	stats() Stats
	watches() []WatchInfo
	lastEnds() []WatchEnd
}

func (e *core) settings() *settings { return &e.cfg }

func (e *core) id() string { return strconv.FormatUint(e.tokenID, 36) }

func (e *core) lastEnds() []WatchEnd { return e.ends.newest() }

// Name returns the name of the engine.
func (v View) Name() string { return v.core.settings().name }

// ID returns a text that no other engine of the host has, not even one of the same name or one
// that has ended.
func (v View) ID() string { return v.core.id() }

// Cached reports whether there is a cache; without one most of Stats is zero.
func (v View) Cached() bool { return v.core.settings().cached() }

// Window returns the bounds of the history that watches can resume from, with the defaults
// filled in. They are zero without a cache, where the history is the backend's.
func (v View) Window() Window { return v.core.windowLimits() }

// Stats is as [Engine.Stats].
func (v View) Stats() Stats { return v.core.stats() }

// Watches is as [Engine.Watches].
func (v View) Watches() []WatchInfo { return v.core.watches() }

// Ends returns the last 64 ends of watches, the newest first.
func (v View) Ends() []WatchEnd { return v.core.lastEnds() }

// Engines returns the engines that run on the host, those of topics too, by name, and
// those of one name in the order in which they began.
func (h *Host) Engines() []View {
	engines := coreOf(h).running()
	list := make([]View, len(engines))
	for i, e := range engines {
		list[i] = View{e}
	}
	return list
}

// running returns the engines that run on the host, as [Host.Engines] does.
func (h *host) running() []*core {
	h.mu.Lock()
	list := slices.Clone(h.engines)
	h.mu.Unlock()
	slices.SortStableFunc(list, func(a, b *core) int { return strings.Compare(a.cfg.name, b.cfg.name) })
	return list
}

// addEngine puts an engine on the host's list, unless its actors have stopped already.
func (h *host) addEngine(e *core) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-e.stopped:
	default:
		h.engines = append(h.engines, e)
	}
}

// removeEngine takes an engine whose actors have stopped off the list, and closes its
// stopped under the same lock: so it is not on the list when its Close returns.
func (h *host) removeEngine(e *core) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.engines = slices.DeleteFunc(h.engines, func(other *core) bool { return other == e })
	close(e.stopped)
}
