// Package controller runs a controller: for each object of a source that changes, it
// calls a function that brings the real state in line with the object, and calls it again
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
// The informer keeps a copy of the source's objects, and says which keys have changed.
// The work queue holds each key once, however often it changes, and gives it to one
// worker at a time, so that two calls are never about the same key. Reconcile gets the
// object as it is at the moment of the call, nil if it is gone: it acts on the state,
// not on the single changes. If it fails or panics, the key is tried again after a delay
// that grows; see [Config].Limiter and [Config].MaxAttempts.
//
// Workers are actors on the host's executor for code that may block. An idle one takes
// no goroutine.
//
// # Tests
//
// On a deterministic host ([engine.NewSeeded]) with a virtual clock nothing runs but in
// calls that wait: [Controller.Settle] runs everything that can run, and moving the
// clock makes the delayed keys due. On other hosts it waits until the queue is empty.
//
// # Errors
//
// The host's logger and Config.OnError get each failed call as a [*ReconcileError], with
// the controller's name, the key, and how often it has failed. A source that fails is
// tried again; one that has ended for good closes Controller.Done, and Controller.Err says
// why.
//
// # Closing
//
// Close ends the contexts of the calls that run and waits for them. It drops what is
// queued: a controller that starts again reconciles every object.
package controller
