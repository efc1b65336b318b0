package compare

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/watchmill/watchmill/bench"
	"github.com/watchmill/watchmill/internal/machine"
)

// Plan says what to run.
type Plan struct {
	Workloads []bench.Workload
	Ours      bench.Contender
	Rivals    []bench.Contender
	// Rounds is how often each workload is run, at least once; five or more give stable
	// medians.
	Rounds int
	// Small runs the small sizes, whose figures are meaningless.
	Small bool
	// Apart runs a workload in a process of its own, if the workload needs one:
	// contender is the contender's name or [Floor]. Nil runs everything in this
	// process.
	Apart func(ctx context.Context, w bench.Workload, contender string) (bench.Result, error)
	// Progress, if set, is called before each run.
	Progress func(workload, contender string, round int)
	// Finished, if set, is called after each round of all workloads with the report so
	// far, so that a run that is interrupted leaves the rounds before. Its error ends the run.
	Finished func(*Report) error

	// Others begins to measure the use of the processors, and returns a function that
	// returns the share of them that other programs, and other machines on the same host,
	// have used since, from 0 to 1. A round with a share above a twentieth is repeated, at
	// most twice. Nil means the figures of the operating system.
	Others func() func() float64
}

// Floor is the contender name of the bare loop.
const Floor = "the floor"

// Run runs the plan, one round of all workloads after the other. A machine that is slow
// for some minutes so disturbs one round of several workloads, which hardly affects their
// medians, and not all rounds of one. The failure of a rival is part of the report; that
// of watchmill or a floor is returned.
func Run(ctx context.Context, plan Plan) (*Report, error) {
	report := &Report{Schema: Schema, Machine: ThisMachine(ctx), Small: plan.Small}
	for _, w := range plan.Workloads {
		report.Workloads = append(report.Workloads, Measured{ID: w.ID, Text: w.Text, Params: plan.params(w), goals: w.Goals})
	}
	for round := range max(plan.Rounds, 1) {
		for i, w := range plan.Workloads {
			r, err := plan.calmRound(ctx, w, round)
			if err != nil {
				return nil, fmt.Errorf("workload %s: %w", w.ID, err)
			}
			report.Workloads[i].Rounds = append(report.Workloads[i].Rounds, r)
		}
		if plan.Finished != nil {
			if err := plan.Finished(report); err != nil {
				return nil, err
			}
		}
	}
	return report, nil
}

func (p Plan) params(w bench.Workload) bench.Params {
	if p.Small {
		return w.Small
	}
	return w.Full
}

// disturbed is the share of the processors above which their use by other programs and
// other machines disturbs a round: high percentiles then mean nothing, so the round is
// repeated.
const disturbed = 0.05

// maxRepeats is how often a disturbed round is repeated at most. The least disturbed run of
// it counts.
const maxRepeats = 2

// calmRound runs a round, and repeats it while the machine was disturbed. It returns the
// run that was disturbed least.
func (p Plan) calmRound(ctx context.Context, w bench.Workload, round int) (calmest Round, err error) {
	others := p.Others
	if others == nil {
		others = func() func() float64 { return machine.WatchOthers().Share }
	}
	for try := range 1 + maxRepeats {
		taken := others()
		r, err := p.round(ctx, w, round)
		if err != nil {
			return Round{}, err
		}
		if r.Taken = taken(); try == 0 || r.Taken < calmest.Taken {
			calmest = r
		}
		if calmest.Taken <= disturbed || p.Small {
			break
		}
	}
	return calmest, nil
}

// round runs every contender once, in odd rounds in the opposite order.
func (p Plan) round(ctx context.Context, w bench.Workload, round int) (Round, error) {
	var r Round
	runs := []func() error{
		func() (err error) { r.Ours, err = p.run(ctx, w, p.Ours, round); return err },
	}
	for _, rival := range p.Rivals {
		if w.Able(rival) {
			runs = append(runs, func() error { r.Rivals = append(r.Rivals, p.rival(ctx, w, rival, round)); return ctx.Err() })
		}
	}
	runs = append(runs, func() (err error) { r.Floor, err = p.floor(ctx, w, round); return err })
	if round%2 == 1 {
		slices.Reverse(runs)
	}
	for _, run := range runs {
		runtime.GC()
		if err := run(); err != nil {
			return Round{}, err
		}
	}
	return r, nil
}

func (p Plan) run(ctx context.Context, w bench.Workload, c bench.Contender, round int) (bench.Result, error) {
	p.progress(w, c.Name, round)
	if w.Apart && p.Apart != nil {
		return p.Apart(ctx, w, c.Name)
	}
	return w.Run(ctx, c, p.params(w))
}

func (p Plan) rival(ctx context.Context, w bench.Workload, c bench.Contender, round int) Rival {
	result, err := p.run(ctx, w, c, round)
	if err != nil {
		return Rival{Name: c.Name, Failed: err.Error()}
	}
	return Rival{Name: c.Name, Result: result}
}

func (p Plan) floor(ctx context.Context, w bench.Workload, round int) (bench.Result, error) {
	p.progress(w, Floor, round)
	if w.Apart && p.Apart != nil {
		return p.Apart(ctx, w, Floor)
	}
	return w.Floor(ctx, p.params(w))
}

// Alone runs one workload once in this process, by the contender of that name, or
// by the floor for [Floor].
func (p Plan) Alone(ctx context.Context, w bench.Workload, contender string) (bench.Result, error) {
	if contender == Floor {
		return w.Floor(ctx, p.params(w))
	}
	for _, c := range append(p.Rivals[:len(p.Rivals):len(p.Rivals)], p.Ours) {
		if c.Name == contender {
			return w.Run(ctx, c, p.params(w))
		}
	}
	return nil, fmt.Errorf("no contender %q", contender)
}

func (p Plan) progress(w bench.Workload, contender string, round int) {
	if p.Progress != nil {
		p.Progress(w.ID, contender, round)
	}
}
