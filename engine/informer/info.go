package informer

import (
	"cmp"
	"slices"
)

// HandlerInfo says how far a handler is.
type HandlerInfo struct {
	Name   string
	Policy Policy
	// Lag is that of [Registration.Lag].
	Lag int
	// Synced: the handler has handled its initial state. Running: it is being called.
	Synced, Running bool
}

// Observed is a [*SharedInformer] of any type, for what shows its numbers: packages inspect and
// inspect/prommetrics. It may gain methods: a type of your own is one by embedding one.
type Observed interface {
	Name() string
	Stats() Stats
	Handlers() []HandlerInfo

	isObserved()
}

func (*SharedInformer[T]) isObserved() {}

// Handlers returns the handlers that have not ended, those with the most pending notifications
// first. It takes a microsecond for each, and does not block.
func (s *SharedInformer[T]) Handlers() []HandlerInfo { return s.core.handlerInfos() }

func (s *sharedInformer) handlerInfos() []HandlerInfo {
	s.mu.Lock()
	listeners := slices.Clone(s.listeners)
	s.mu.Unlock()
	infos := make([]HandlerInfo, len(listeners))
	for i, l := range listeners {
		infos[i] = HandlerInfo{
			Name: l.name(), Policy: l.options.Policy, Lag: l.lag(), Synced: l.hasSynced(), Running: l.isRunning(),
		}
	}
	slices.SortStableFunc(infos, func(a, b HandlerInfo) int { return cmp.Compare(b.Lag, a.Lag) })
	return infos
}
