// Package controller runs a controller. For each object of a source that changes, it
// calls a function that brings the real state in line with the object. It calls it again
// until it succeeds.
//
//	c, err := controller.New(controller.Config[Pod]{
//		Source: pods.Source(),
//		Reconcile: func(ctx context.Context, key string, pod *engine.Object[Pod]) (controller.Result, error) {
//			…
//		},
//	})
//	defer c.Close()
//
// # Data flow
//
//	source ─▶ informer ──keys──▶ work queue ──▶ workers: Reconcile(key, object) ──▶ the world
//	              │                  ▲                │        ▲
//	              │                  └── later again ─┘        │
//	              └────────── the newest object ───────────────┘
//
// Each part has one task:
//
//   - The informer keeps a copy of the source's objects, and says which keys have changed.
//   - The work queue holds each key once, however often it changes. It gives a key to one
//     worker at a time, so that two calls that run are never about the same key.
//   - Reconcile gets the object as it is at the moment of the call, nil if it is gone. It
//     acts on the state, not on the single changes. No call begins before the first list of
//     the source has arrived: until then each object would seem to be gone.
//   - If Reconcile fails or panics, the key is tried again after a delay that grows; see
//     [Config].Limiter and [Config].MaxAttempts.
//
// Workers are actors on the host's executor for code that may block. An idle one takes
// no goroutine.
//
// # Objects of other kinds
//
// A controller follows one kind. If others matter, such as that of objects which it makes, an informer
// follows each, and a handler of that calls [Controller.Enqueue] with the key of the owner. Wait for
// the informer ([informer.WaitFor]) before New: until then it seems to have no objects. Example_owned does so.
//
// # Tests
//
// [Controller.Settle] waits until no key is queued or being reconciled. On a
// deterministic host ([engine.NewSeededExecutor]) with a virtual clock it runs everything that
// can run, and moving the clock makes delayed keys due.
//
// # Errors
//
// The host's logger and Config.OnError get each failed call, OnError as a [*ReconcileError],
// with the controller's name, the key, how often it has failed, and the stack if it has
// panicked. A source that fails is tried again. One that has ended for good closes
// Controller.Done, and Controller.Err says why.
//
// # Metrics
//
// Stats has the current numbers, and Config.Metrics gets how long keys wait and calls take. Package
// controller/prommetrics shows both to Prometheus.
//
// # Closing
//
// Close ends the contexts of the calls that run and waits for them. It drops what is
// queued: a controller that starts again reconciles every object.
package controller
