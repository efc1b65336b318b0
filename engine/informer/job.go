package informer

import "github.com/watchmill/watchmill/store"

// telling is the job to tell notifications.
func telling[T any](notifications []Notification[T]) job[T] {
	return job[T]{n: len(notifications), at: func(i int) Notification[T] { return notifications[i] }}
}

// told is the job to tell of each object of a state.
func told[T any](state *Snapshot[T], as func(*Object[T]) Notification[T]) job[T] {
	objects := state.view.List()
	return job[T]{n: len(objects), at: func(i int) Notification[T] { return as(objects[i]) }}
}

func added[T any](o *Object[T], cause Cause) Notification[T] {
	return Notification[T]{Type: store.Added, Cause: cause, Object: o}
}

func resynced[T any](o *Object[T]) Notification[T] {
	return Notification[T]{Type: store.Modified, Cause: Resync, Old: o, Object: o}
}
