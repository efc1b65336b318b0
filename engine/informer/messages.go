package informer

import "github.com/watchmill/watchmill/actors/reflector"

// message is what the informer's actor takes.
type message[T any] interface{ toInformer(T) }

// upstream is what the Reflector tells, in order. It is offered: a full mailbox
// holds the Reflector back.
type upstream[T any] struct{ reflector.Update[T] }

// join adds a handler. AddEventHandler and Subscribe send it.
type join[T any] struct{ listener *listener[T] }

// leave takes a handler out: it is told nothing that is committed from then on.
// Remove sends it.
type leave[T any] struct{ listener *listener[T] }

// look asks the actor to see whether it still has to hold the source back, or
// must end. Handlers that have caught up send it, whoever made a function of the
// configuration fail, and New, to let the Reflector in.
type look[T any] struct{}

func (upstream[T]) toInformer(T) {}
func (join[T]) toInformer(T)     {}
func (leave[T]) toInformer(T)    {}
func (look[T]) toInformer(T)     {}
