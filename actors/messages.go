package actors

// The protocol of the runtime itself. Actors get system messages, ahead of
// everything in their queue, and each is one of
//
//   - protoactor's own: Started, Stop, Restart, Terminated, Suspend- and
//     ResumeMailbox, sent by it or, where that would risk a dead letter, by us;
//   - one of those below.
//
// The top actor, the parent of all that are spawned on the System, has a queue
// like any other; its messages are adoptions.

// systemMessage is a link in an actor's list of system messages.
type systemMessage struct {
	next    *systemMessage
	message any // a pointer to one of protoactor's types or of those below
}

// failed tells an actor that its own user code has panicked. Sent by that
// actor to itself; it makes protoactor suspend it and ask its parent.
type failed struct{ failure *Failure }

// dismissal tells an actor to stop if it is the sender's child. Sent by
// [Context.StopChild].
type dismissal struct{ parent ID }

// adoption asks the top actor to spawn an actor as its child. Sent by [Spawn].
type adoption struct{ child *cell }
