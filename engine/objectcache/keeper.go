package objectcache

import (
	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
)

// keeper is the actor that starts and stops Reflectors, its children. It is told
// to look at an entry, never what to do there: so whatever has changed meanwhile,
// and in whatever order, what runs is what is needed now.
type keeper struct {
	cache *cache
	// children are the entries whose Reflector is not gone.
	children map[actors.ID]*entry
}

// Receive looks at an entry.
func (k *keeper) Receive(ctx *actors.Context, msg message) {
	switch m := msg.(type) {
	case look:
		m.entry.asked.Store(false)
		k.look(ctx, m.entry)
	case due:
		if m.alarm == m.entry.alarms {
			m.entry.alarm = nil
			k.look(ctx, m.entry)
		}
	}
}

// look gives the entry the Reflector that it needs, or takes it away.
func (k *keeper) look(ctx *actors.Context, e *entry) {
	needed, idleIn := e.review(k.cache.now(), k.cache.cfg.maxIdle)
	switch {
	case needed && e.child == nil:
		k.start(ctx, e)
	case !needed && e.child != nil && !e.stopping:
		e.stopping = true
		e.child.Stop()
	}
	switch {
	case idleIn == 0, e.child == nil:
		disarm(e)
	case e.alarm == nil:
		e.alarms++
		over := due{e, e.alarms}
		e.alarm = ctx.Clock().AfterFunc(idleIn, func() { k.cache.keeper.Tell(over) })
	}
	if e.child == nil {
		k.cache.forget(e)
	}
}

// start starts the entry's Reflector.
func (k *keeper) start(ctx *actors.Context, e *entry) {
	f := &feed{cache: k.cache, entry: e}
	e.follow(f)
	cfg := k.cache.cfg.reflector(e.key, f, k.cache.host.NewRand())
	cfg.OnError = f.failed
	child, err := reflector.Spawn(ctx, cfg)
	if err != nil { // the source has panicked, or the cache is closing
		e.lose(f, err)
		k.cache.report(&SourceError{Key: e.key, Err: err})
		return
	}
	e.child, e.stopping = child, false
	k.children[child.ID()] = e
	k.cache.reflectors.Add(1)
	k.cache.starts.Add(1)
}

func disarm(e *entry) {
	if e.alarm != nil {
		e.alarm.Stop()
		e.alarm = nil
	}
}

// ChildFailed starts a Reflector anew that has failed: it lists again, at the
// pace of its Backoff.
func (k *keeper) ChildFailed(*actors.Context, actors.ID, any) actors.Directive {
	return actors.Restart
}

// ChildStopped is where a Reflector leaves, whatever the reason. If there is need
// of one again, this is when it can start.
func (k *keeper) ChildStopped(ctx *actors.Context, id actors.ID) {
	e := k.children[id]
	delete(k.children, id)
	e.child = nil
	k.cache.reflectors.Add(-1)
	k.look(ctx, e)
}

// Stopping lets nobody wait any more. The last look at each entry comes with the
// end of its Reflector.
func (k *keeper) Stopping(*actors.Context) { k.cache.shut() }

// Stopped tells Close that all are gone.
func (k *keeper) Stopped(*actors.Context) { k.cache.leave() }

// Dropped tells Close the same of a keeper that never began.
func (k *keeper) Dropped(msg message) {
	if _, ok := msg.(hello); ok {
		k.cache.shut()
		k.cache.leave()
	}
}
