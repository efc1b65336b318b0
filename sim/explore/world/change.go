package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// errDenied is the error of a function that does not let an object be deleted.
var errDenied = errors.New("it is not to be deleted")

// leased is how long an object lives that change creates.
const leased = 10 * time.Second

// changing is a call that changes, deletes or creates the object under a key.
type changing[T any] struct {
	engine *engine.Engine[T]
	asked  asked[T]
	// known: there is such an object, which is at revision since.
	known bool
	since engine.Revision
	// now is the time of the call.
	now time.Time
	// refused is why the call must fail; nil if it must not.
	refused error
}

// change changes, deletes or creates an object by one of the calls that can: see [script.Change].
func (w *World[T]) change(s script.Step) {
	draw := rand.New(rand.NewPCG(s.Seed, 1))
	c := changing[T]{engine: w.writer(s), asked: w.changeTo(w.cfg.Draw(draw), 0), now: w.clock.Now()}
	_, since, known := w.history().Get(c.asked.key)
	c.known, c.since = known, w.history().Shown(since)
	calls := []func(*changing[T]) (*engine.Object[T], error){
		(*changing[T]).update, (*changing[T]).makePermanent, (*changing[T]).modify, (*changing[T]).replace,
		(*changing[T]).deleteByModify, (*changing[T]).deleteIf, (*changing[T]).deleteDenied,
		(*changing[T]).putAbsent, (*changing[T]).createWithTTL,
	}
	o, err := calls[draw.IntN(len(calls))](&c)
	w.judgeResult(s, c.asked, o, err, c.refused, c.refused != nil)
}

// mustExist sets the reason of a call that needs an object, and returns the key.
func (c *changing[T]) mustExist() string {
	if !c.known {
		c.refused = engine.ErrNotFound
	}
	return c.asked.key
}

// mustNotExist sets the reason of a call that needs that there is no object, and returns the value.
func (c *changing[T]) mustNotExist(reason error) T {
	if c.known {
		c.refused = reason
	}
	return *c.asked.value
}

// deletes makes the call one that deletes the object, and returns its key.
func (c *changing[T]) deletes() string {
	c.asked = asked[T]{kind: store.Deleted, key: c.mustExist()}
	return c.asked.key
}

func (c *changing[T]) update() (*engine.Object[T], error) {
	return c.engine.Update(context.Background(), c.mustExist(), func(T) (T, error) { return *c.asked.value, nil }, engine.UpdateOptions{})
}

func (c *changing[T]) makePermanent() (*engine.Object[T], error) {
	if !c.asked.expires.IsZero() {
		c.asked.expires, c.asked.leaves = time.Time{}, 0
	}
	return c.engine.Update(context.Background(), c.mustExist(), func(T) (T, error) { return *c.asked.value, nil }, engine.UpdateOptions{Permanent: true})
}

func (c *changing[T]) modify() (*engine.Object[T], error) {
	return c.engine.Modify(context.Background(), c.mustExist(), func(*engine.Object[T]) (engine.Change[T], error) {
		return engine.Change[T]{Value: *c.asked.value}, nil
	}, engine.ModifyOptions{})
}

func (c *changing[T]) replace() (*engine.Object[T], error) {
	c.mustExist()
	return c.engine.Replace(context.Background(), *c.asked.value, max(c.since, judge.First))
}

func (c *changing[T]) deleteByModify() (*engine.Object[T], error) {
	return c.engine.Modify(context.Background(), c.deletes(), func(*engine.Object[T]) (engine.Change[T], error) {
		return engine.Change[T]{Delete: true}, nil
	}, engine.ModifyOptions{})
}

func (c *changing[T]) deleteIf() (*engine.Object[T], error) {
	return c.engine.DeleteIf(context.Background(), c.deletes(), func(*engine.Object[T]) error { return nil }, engine.DeleteOptions{})
}

func (c *changing[T]) deleteDenied() (*engine.Object[T], error) {
	key := c.deletes()
	if c.known {
		c.refused = errDenied
	}
	return c.engine.DeleteIf(context.Background(), key, func(*engine.Object[T]) error { return errDenied }, engine.DeleteOptions{})
}

func (c *changing[T]) putAbsent() (*engine.Object[T], error) {
	value := c.mustNotExist(engine.ErrPrecondition)
	return c.engine.PutWith(context.Background(), value, engine.PutOptions{Preconditions: engine.Preconditions{Absent: true}})
}

func (c *changing[T]) createWithTTL() (*engine.Object[T], error) {
	c.asked.expires = c.now.Add(leased)
	return c.engine.CreateWith(context.Background(), c.mustNotExist(engine.ErrExists), engine.CreateOptions{TTL: leased})
}
