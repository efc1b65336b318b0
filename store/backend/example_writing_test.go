package backend_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/usercode"
)

// The key of an object is what the schema makes of its value.
func ExampleStorage_Create() {
	s := ledger()
	defer s.Backend().Close()
	carol, err := s.Create(context.Background(), newAccount("carol", 7), backend.CreateOptions{})
	fmt.Println(carol.Key, carol.Revision, carol.Created, err)
	// Output: carol 4 4 <nil>
}

func ExampleStorage_Get() {
	s := ledger()
	defer s.Backend().Close()
	alice, err := s.Get(context.Background(), "alice")
	fmt.Println(balance(alice), alice.Revision, err)
	_, err = s.Get(context.Background(), "eve")
	fmt.Println(errors.Is(err, store.ErrNotFound))
	// Output:
	// 100 2 <nil>
	// true
}

// Prepare completes the draft from the object that it replaces, at each attempt.
func ExampleStorage_Put() {
	s := ledger()
	defer s.Backend().Close()
	draft := newAccount("alice", 50)
	draft.Key = "alice"
	o, err := s.Put(context.Background(), draft, func(_ context.Context, current, draft *store.Object) error {
		store.As[account](draft).Value.Balance += balance(current)
		return nil
	}, backend.UpdateOptions{})
	fmt.Println(balance(o), o.Revision, err)
	// Output: 150 4 <nil>
}

// A write that means one object does not change a later one under the same key.
func ExamplePreconditions() {
	ctx := context.Background()
	s := ledger()
	defer s.Backend().Close()
	seen, err := s.Get(ctx, "alice")
	if err != nil {
		panic(err)
	}
	sameAccount := backend.DeleteOptions{Preconditions: backend.Preconditions{UID: seen.Created}}
	_, err = s.Delete(ctx, "alice", sameAccount)
	fmt.Println(err)
	if _, err := s.Create(ctx, newAccount("alice", 1), backend.CreateOptions{}); err != nil {
		panic(err)
	}
	_, err = s.Delete(ctx, "alice", sameAccount)
	fmt.Println("another account of that name stays:", errors.Is(err, store.ErrPrecondition))
	// Output:
	// <nil>
	// another account of that name stays: true
}

// A watch is pulled. It notifies when there is something to take, and a batch says up to
// which revision nothing is missing.
func ExampleListerWatcher() {
	ctx := context.Background()
	s := ledger()
	defer s.Backend().Close()
	var from backend.ListerWatcher = s.Backend()
	list, err := from.List(ctx, backend.ListOptions{})
	if err != nil {
		panic(err)
	}
	notified := make(chan struct{}, 1)
	w, err := from.Watch(ctx, backend.WatchOptions{From: list.Revision, Notify: func() {
		select {
		case notified <- struct{}{}:
		default: // it was notified already
		}
	}})
	if err != nil {
		panic(err)
	}
	defer w.Close()
	batch, err := w.Next(10)
	fmt.Println(len(batch.Events), "through", batch.Through, err)
	if _, err := s.Create(ctx, newAccount("carol", 7), backend.CreateOptions{}); err != nil {
		panic(err)
	}
	<-notified
	batch, err = w.Next(10)
	fmt.Println(batch.Events[0].Type, batch.Events[0].Key(), "through", batch.Through, err)
	// Output:
	// 0 through 3 <nil>
	// ADDED carol through 4 <nil>
}

// A watch of storage in memory has every event at once, and need not be asked for progress.
func ExampleRequestProgress() {
	s := ledger()
	defer s.Backend().Close()
	w, err := s.Backend().Watch(context.Background(), backend.WatchOptions{Notify: func() {}})
	if err != nil {
		panic(err)
	}
	defer w.Close()
	err = backend.RequestProgress(context.Background(), w)
	fmt.Println(errors.Is(err, store.ErrUnsupported))
	// Output: true
}

// A backend checks the start of a watch before it begins one.
func ExampleWatchOptions_Check() {
	const compacted, current = 10, 20
	for _, from := range []store.Revision{5, 15, 25} {
		opts := backend.WatchOptions{From: from, Notify: func() {}}
		if err := opts.Validate(); err != nil {
			panic(err)
		}
		err := opts.Check(compacted, current)
		fmt.Println(from, errors.Is(err, store.ErrExpired), errors.Is(err, store.ErrFuture))
	}
	fmt.Println(errors.Is(backend.WatchOptions{}.Validate(), usercode.ErrConfig))
	// Output:
	// 5 true false
	// 15 false false
	// 25 false true
	// true
}

// A backend finds out when an object that it writes expires.
func ExamplePutOptions_Expires() {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	old := &store.Object{Expires: noon.Add(time.Minute)}
	for _, opts := range []backend.PutOptions{{TTL: time.Hour}, {KeepExpiry: true}, {}} {
		if err := opts.Validate(); err != nil {
			panic(err)
		}
		fmt.Println(opts.Expires(noon, old).Format(time.TimeOnly), opts.Expires(noon, old).IsZero())
	}
	fmt.Println(errors.Is(backend.PutOptions{TTL: time.Hour, KeepExpiry: true}.Validate(), usercode.ErrConfig))
	// Output:
	// 13:00:00 false
	// 12:01:00 false
	// 00:00:00 true
	// true
}

// A conditional write checks the present object.
func ExampleCheckExpected() {
	current := &store.Object{Key: "alice", Revision: 7}
	fmt.Println(backend.CheckExpected("alice", current, 7))
	fmt.Println(errors.Is(backend.CheckExpected("alice", current, 6), store.ErrConflict))
	fmt.Println(errors.Is(backend.CheckExpected("alice", current, 0), store.ErrExists))
	fmt.Println(errors.Is(backend.CheckExpected("alice", nil, 6), store.ErrNotFound))
	// Output:
	// <nil>
	// true
	// true
	// true
}

// The key of a value must be that under which it is written.
func ExampleCheckKey() {
	fmt.Println(backend.CheckKey("alice", "alice"))
	var mismatch *backend.KeyMismatchError
	fmt.Println(errors.As(backend.CheckKey("alice", "bob"), &mismatch))
	fmt.Println(errors.Is(backend.CheckKey("alice", ""), store.ErrInvalidKey))
	// Output:
	// <nil>
	// true
	// true
}

// The functions of a schema are the user's: their panics are errors.
func ExampleDescribe() {
	schema := accounts
	schema.Describe = func(o *store.Object) {
		o.Labels = store.LabelsOf(map[string]string{"id": store.As[account](o).Value.ID})
	}
	o := newAccount("alice", 100)
	fmt.Println(backend.Describe(&schema, o), o.Labels)
	schema.Describe = func(*store.Object) { panic("cannot") }
	fmt.Println(errors.Is(backend.Describe(&schema, o), usercode.ErrPanic))
	// Output:
	// <nil> id=alice
	// true
}

func ExampleMeasure() {
	fmt.Println(backend.Measure(&accounts, newAccount("alice", 100)))
	// Output: 32 <nil>
}

// What may be tried again is not what may have been done.
func ExampleRetryable() {
	for _, err := range []error{
		backend.ErrUnavailable,
		store.ErrPrecondition,
		&backend.UncertainError{Verb: "put", Key: "alice", Cause: backend.ErrUnavailable},
	} {
		fmt.Println(backend.Retryable(err), backend.Uncertain(err))
	}
	// Output:
	// true false
	// false false
	// false true
}

// After an uncertain write only a read shows whether it was done.
func ExampleUncertain() {
	err := error(&backend.UncertainError{Verb: "put", Key: "alice", Cause: context.DeadlineExceeded})
	fmt.Println(backend.Uncertain(err), errors.Is(err, context.DeadlineExceeded))
	fmt.Println(backend.Uncertain(backend.ErrFull))
	// Output:
	// true true
	// false
}

// A token that was cut or changed is refused, and not taken for another place.
func ExampleParseToken() {
	text := backend.Token{Revision: 7, Start: "alice"}.Encode()
	token, err := backend.ParseToken(text)
	fmt.Println(token.Revision, token.Start, err)
	_, err = backend.ParseToken(text[:len(text)-1])
	fmt.Println(errors.Is(err, store.ErrInvalidContinue))
	// Output:
	// 7 alice <nil>
	// true
}

// A value that is shown to watches, and is not state.
func ExampleEmitter() {
	ctx := context.Background()
	b, err := memory.New(accounts, memory.Options{FirstRevision: 1})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	var emitter backend.Emitter = b
	draft := newAccount("alice", 1)
	draft.Key = "alice"
	o, err := emitter.Emit(ctx, draft)
	fmt.Println(o.Revision, err)
	_, err = b.Get(ctx, "alice")
	fmt.Println(errors.Is(err, store.ErrNotFound))
	// Output:
	// 2 <nil>
	// true
}
