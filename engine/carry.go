package engine

import (
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// carry calls Config.Carry for a draft that is about to be written, unless it equals the
// present object.
func (e *core) carry(ctx context.Context, current, next *store.Object) error {
	if e.cfg.carry == nil || next == nil {
		return nil
	}
	return usercode.Call("Config.Carry", next.Key, func() {
		if current == nil || !e.schema.Equal(current, next) {
			e.cfg.carry(ctx, next)
		}
	})
}

// preparing returns carry for [backend.Storage.Put], nil if nothing is carried.
func (e *core) preparing() func(ctx context.Context, current, next *store.Object) error {
	if e.cfg.carry == nil {
		return nil
	}
	return e.carry
}

// carrying returns a function that calls change, and then carry on its result.
func (e *core) carrying(change backend.UpdateFunc) backend.UpdateFunc {
	if e.cfg.carry == nil {
		return change
	}
	return func(ctx context.Context, current *store.Object) (*store.Object, error) {
		next, err := change(ctx, current)
		if err != nil {
			return next, err
		}
		return next, e.carry(ctx, current, next)
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
		return c, e.carry(ctx, current, c.Draft)
	}
}
