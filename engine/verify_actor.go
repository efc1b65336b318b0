package engine

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/clock"
)

// verifyJitter is how much of the period is added at random at most, so that
// engines that were started together do not read the backend together.
const verifyJitter = 0.5

// verifyRest is how many times as long as a comparison took the pause after it is at least, so that those of
// storage behind a slow link leave most of it to others.
const verifyRest = 9

// verifier is the actor that periodically compares cache and backend. It runs on the
// executor for blocking actors.
type verifier struct {
	engine *core
	self   **actors.Ref[verifyMessage]
	rand   *rand.Rand
	timer  clock.Timer
}

// verifyMessage is what a verifier receives.
type verifyMessage uint8

const (
	// verifyBegin arms the timer. The verifier's parent sends it, and a verifier
	// that fails.
	verifyBegin verifyMessage = iota
	// verifyDue: it is time to compare. The clock sends it.
	verifyDue
)

// spawnVerifier spawns the verifier, if configured.
func (e *core) spawnVerifier(ctx *actors.Context) {
	if e.cfg.verifyEvery == 0 {
		return
	}
	random, self := e.host.newRand(), new(*actors.Ref[verifyMessage])
	*self = actors.Spawn(ctx, "verifier", func() actors.Behavior[verifyMessage] {
		return &verifier{engine: e, self: self, rand: random}
	}, actors.Options{Executor: ctx.System().Blocking()})
	(*self).Tell(verifyBegin)
}

// arm arms the timer after a comparison that took so long.
func (v *verifier) arm(ctx *actors.Context, took time.Duration) {
	period := max(v.engine.cfg.verifyEvery, verifyRest*min(took, math.MaxInt64/verifyRest))
	jitter := time.Duration(v.rand.Float64() * verifyJitter * float64(period))
	pause := period + min(jitter, math.MaxInt64-period) // the sum might overflow
	v.timer = ctx.Clock().AfterFunc(pause, func() { (*v.self).Tell(verifyDue) })
}

// Receive compares, if it is time and the cache is ready.
func (v *verifier) Receive(ctx *actors.Context, m verifyMessage) {
	began := ctx.Clock().Now()
	if m == verifyDue && v.engine.parts.cache.Check(began) == nil {
		v.compare(v.engine.serving)
	}
	v.arm(ctx, ctx.Clock().Now().Sub(began))
}

func (v *verifier) compare(ctx context.Context) {
	e := v.engine
	err := e.compare(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	e.report(err)
	if errors.Is(err, ErrInconsistent) {
		e.parts.cache.Distrust(watchcache.Distrust{Cause: err, Reply: make(chan error, 1)})
	}
}

// Stopping disarms the timer.
func (v *verifier) Stopping(*actors.Context) { clock.Stop(&v.timer) }

// Restarting makes the restarted verifier arm its timer, even if the clock fails to stop this one's.
func (v *verifier) Restarting(*actors.Context) {
	(*v.self).Tell(verifyBegin)
	clock.Stop(&v.timer)
}
