package load

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
)

// reader is one of a group of readers.
type reader struct {
	run   *run
	group *callers
	spec  *scenario.Reader
	rand  *rand.Rand
	clock *pace.Schedule
	// made is how many reads it has made: its templates go by that.
	made int
}

func newReader(r *run, g *callers, spec *scenario.Reader, part, number int) *reader {
	chance := rand.New(rand.NewPCG(r.plan.Seed, uint64(number)+1_000_000))
	share := float64(part) / float64(spec.Count)
	return &reader{
		run: r, group: g, spec: spec, rand: chance, made: part,
		clock: pace.NewSchedule(scenario.Steady, spec.Rate/float64(spec.Count), 0, share, chance),
	}
}

// read makes each read when it is due, until the load is over.
func (rd *reader) read(ctx context.Context) {
	rd.group.keep(ctx, rd.clock, 0, rd.run.plan.Duration, rd.one)
}

// one makes a read.
func (rd *reader) one(ctx context.Context, _ int64) error {
	defer func() { rd.made += rd.spec.Count }()
	if rd.spec.Op == scenario.Get {
		key := rd.run.plan.Objects.Key(rd.rand.IntN(rd.run.plan.Objects.Count))
		_, err := rd.run.engine.Get(ctx, key, engine.GetOptions{Read: rd.mode()})
		if errors.Is(err, engine.ErrNotFound) {
			return nil // that is an answer too
		}
		return err
	}
	sel := rd.run.plan.SelectRead(*rd.spec, rd.made)
	opts := engine.ListOptions{Labels: sel.Labels, Fields: sel.Fields, Prefix: sel.Prefix, Limit: rd.spec.Limit, Read: rd.mode()}
	for {
		page, err := rd.run.engine.List(ctx, opts)
		if err != nil || page.Continue == "" {
			return err
		}
		opts.Continue, opts.Read = page.Continue, engine.Read{}
	}
}

// mode returns how fresh the read must be.
func (rd *reader) mode() engine.Read {
	switch rd.spec.Mode {
	case scenario.Cached:
		return engine.Cached()
	case scenario.NotOlder, scenario.Exact:
		if newest, ok := rd.run.ledger.Newest(); ok && rd.spec.Mode == scenario.Exact {
			return engine.Exactly(newest.Revision)
		} else if ok {
			return engine.NotOlderThan(newest.Revision)
		}
	}
	return engine.Latest()
}
