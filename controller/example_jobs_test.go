package controller_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
)

// Job is a piece of work. How often it was tried, and when it is to be tried again, are in the
// object: they outlast a restart, and readers see them.
type Job struct {
	ID, State, Problem string
	Attempts           int
	NotBefore          time.Time
}

// runner returns a controller that tries each job three times. What it writes after a failure
// changes the object, so that the key is reconciled again at once: the pause is kept by NotBefore.
func runner(jobs *engine.Engine[Job], work func(context.Context, Job) error) (*controller.Controller[Job], error) {
	return controller.New(controller.Config[Job]{
		Source: jobs.Source(), Host: jobs.Host(), Name: "runner", Workers: 8,
		Reconcile: func(ctx context.Context, key string, job *engine.Object[Job]) (controller.Result, error) {
			if job == nil || job.Value.State != "" {
				return controller.Result{}, nil // it is gone, or over
			}
			now := jobs.Host().Clock().Now()
			if pause := job.Value.NotBefore.Sub(now); pause > 0 {
				return controller.Result{RequeueAfter: pause}, nil
			}
			next := job.Value
			next.Attempts++
			switch err := work(ctx, next); {
			case err == nil:
				next.State, next.Problem = "done", ""
			case ctx.Err() != nil:
				return controller.Result{}, err // the controller is closed: the job begins again after the restart
			case next.Attempts == 3:
				next.State, next.Problem = "failed", err.Error()
			default:
				next.Problem, next.NotBefore = err.Error(), now.Add(time.Duration(next.Attempts)*time.Second)
			}
			// The outcome is stored even if the controller is closed meanwhile.
			_, err := jobs.Replace(context.WithoutCancel(ctx), next, job.Revision)
			return controller.Result{}, err
		},
	})
}

// A queue of jobs that are tried three times. Where the failure of a job has to be stored, Reconcile
// counts in the object, in place of MaxAttempts.
func Example_jobs() {
	ctx := context.Background()
	clock := engine.NewVirtualClock(time.Unix(0, 0))
	host, err := engine.NewHost(engine.HostConfig{Clock: clock, Executor: engine.NewSeededExecutor(1)})
	must(err)
	defer host.Close()
	jobs, err := engine.New(engine.Config[Job]{Host: host, Key: func(j Job) string { return j.ID }})
	must(err)
	defer jobs.Close()
	c, err := runner(jobs, func(context.Context, Job) error { return errors.New("no paper") })
	must(err)
	defer c.Close()

	_, err = jobs.Create(ctx, Job{ID: "print"})
	must(err)
	for range 4 {
		must(c.Settle(ctx, 0))
		job, err := jobs.Get(ctx, "print", engine.GetOptions{})
		must(err)
		fmt.Printf("attempts: %d, state: %q\n", job.Value.Attempts, job.Value.State)
		clock.Advance(time.Second)
	}
	// Output:
	// attempts: 1, state: ""
	// attempts: 2, state: ""
	// attempts: 2, state: ""
	// attempts: 3, state: "failed"
}
