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

func (v *verifier) arm(ctx *actors.Context) {
	period := v.engine.cfg.verifyEvery
	jitter := time.Duration(v.rand.Float64() * verifyJitter * float64(period))
	pause := period + min(jitter, math.MaxInt64-period) // the sum might overflow
	v.timer = ctx.Clock().AfterFunc(pause, func() { (*v.self).Tell(verifyDue) })
}

// Receive compares, if it is time and the cache is ready.
func (v *verifier) Receive(ctx *actors.Context, m verifyMessage) {
	if m == verifyDue && v.engine.parts.cache.Check(ctx.Clock().Now()) == nil {
		v.compare(v.engine.serving)
	}
	v.arm(ctx)
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

// Restarting makes the restarted verifier arm its timer.
func (v *verifier) Restarting(*actors.Context) {
	clock.Stop(&v.timer)
	(*v.self).Tell(verifyBegin)
}
