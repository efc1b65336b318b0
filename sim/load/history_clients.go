package load

import (
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/clients"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/store"
)

// openClients makes the watchers of the history that have no watch of their own, if it has such.
func (r *run) openClients() (err error) {
	h := r.history
	cfg := clients.Config{
		Engine: r.engine, Host: r.host, OnError: r.failed.engine,
		Own: r.own, Count: h.Watchers, Breaks: h.Breaks, Seed: h.Seed, History: watched{r},
	}
	switch h.Via {
	case ViaObjectCache:
		h.clients, err = clients.References(cfg)
	case ViaInformer:
		h.clients, h.informers, err = clients.Handlers(cfg)
	}
	return err
}

// watched is the history of a run as [clients.History].
type watched struct{ of *run }

// Keys returns the keys in the order in which they first occur.
func (w watched) Keys() (keys []string) {
	seen := map[string]bool{}
	for i := range w.of.history.Changes {
		key := w.of.history.Changes[i].Key
		if seen[key] {
			continue
		}
		seen[key] = true
		if w.of.selects(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (w watched) Selects(o *store.Object) bool { return store.Matches(w.of.history.selected, o) }

func (w watched) Progress() float64 {
	return float64(w.of.history.written.Load()) / float64(len(w.of.history.Changes))
}

func (w watched) ProgressAt(rev engine.Revision) float64 { return w.of.progressAt(rev) }
func (w watched) Last() engine.Revision                  { return w.of.history.last }
func (w watched) Final() states.Objects                  { return w.of.history.finalState }
