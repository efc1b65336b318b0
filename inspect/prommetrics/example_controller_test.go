package prommetrics_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
)

// The numbers of a controller are functions of its Stats.
func Example_controller() {
	ctx := context.Background()
	pods, err := engine.New(engine.Config[pod]{Key: func(p pod) string { return p.Name }})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	scheduler, err := controller.New(controller.Config[pod]{
		Source: pods.Source(), Host: pods.Host(),
		Reconcile: func(context.Context, string, *engine.Object[pod]) (controller.Result, error) {
			return controller.Result{}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer scheduler.Close()

	registry := prometheus.NewRegistry()
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "scheduler_queue_depth"},
			func() float64 { return float64(scheduler.Stats().Queue.Queued) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "scheduler_failed_total"},
			func() float64 { return float64(scheduler.Stats().Failed) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "scheduler_reconciled_total"},
			func() float64 { return float64(scheduler.Stats().Reconciled) }),
	)

	web, err := pods.Create(ctx, pod{"web"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = scheduler.Settle(ctx, web.Revision)
	if err != nil {
		fmt.Println(err)
		return
	}
	families, _ := registry.Gather()
	for _, f := range families {
		m := f.GetMetric()[0]
		fmt.Println(f.GetName(), m.GetGauge().GetValue()+m.GetCounter().GetValue())
	}
	// Output:
	// scheduler_failed_total 0
	// scheduler_queue_depth 0
	// scheduler_reconciled_total 1
}
