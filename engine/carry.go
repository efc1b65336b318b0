package engine

import (
	"context"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// expiry says what a write does with the expiry of its object; see [UpdateOptions].
type expiry struct {
	ttl       time.Duration
	permanent bool
}

// changes reports whether current is written for its expiry alone, as storage decides it, too.
func (x expiry) changes(current *store.Object) bool {
	return x.ttl != 0 || x.permanent && !current.Expires.IsZero()
}

// carry calls Config.Carry for a draft that is about to be written, unless it changes neither
// the present object nor its expiry.
func (e *core) carry(ctx context.Context, current, next *store.Object, x expiry) error {
	if e.cfg.carry == nil || next == nil {
		return nil
	}
	return usercode.Call("Config.Carry", next.Key, func() {
		if current == nil || x.changes(current) || !e.schema.Equal(current, next) {
			e.cfg.carry(ctx, next)
		}
	})
}

// carryEmitted is carry for a draft that is emitted under its key, which must stay the value's.
func (e *core) carryEmitted(ctx context.Context, draft *store.Object) error {
	if e.cfg.carry == nil {
		return nil
	}
	if err := e.carry(ctx, nil, draft, expiry{}); err != nil {
		return err
	}
	key, err := e.keyOf(draft)
	if err != nil {
		return err
	}
	return backend.CheckKey(draft.Key, key)
}

// preparing returns carry for [backend.Storage.Put], nil if nothing is carried.
func (e *core) preparing(x expiry) func(ctx context.Context, current, next *store.Object) error {
	if e.cfg.carry == nil {
		return nil
	}
	return func(ctx context.Context, current, next *store.Object) error { return e.carry(ctx, current, next, x) }
}

// carrying returns a function that calls change, and then carry on its result.
func (e *core) carrying(change backend.UpdateFunc, x expiry) backend.UpdateFunc {
	if e.cfg.carry == nil {
		return change
	}
	return func(ctx context.Context, current *store.Object) (*store.Object, error) {
		next, err := change(ctx, current)
		if err != nil {
			return next, err
		}
		return next, e.carry(ctx, current, next, x)
	}
}

// carryingChange is carrying for Modify. A deletion has no value to carry anything.
func (e *core) carryingChange(change backend.ModifyFunc) backend.ModifyFunc {
	if e.cfg.carry == nil {
		return change
	}
	return func(ctx context.Context, current *store.Object) (backend.Change, error) {
		c, err := change(ctx, current)
		if err != nil || c.Delete {
			return c, err
		}
		return c, e.carry(ctx, current, c.Draft, expiry{c.TTL, c.Permanent})
	}
}
