// Package buses adapts event buses as contenders for the workloads without state.
//
//	workload ──Publish──▶ bench.Bus ──▶ the library's bus ──▶ handle(seq), for each subscriber
//
// Each is configured to lose nothing, if possible: blocking, or without limits.
// Where a bus calls handlers in the publisher's goroutine, a delivery is a
// function call; such a bus has no queue, and one handler that blocks stops the
// publisher and all other handlers.
//
//	Channels      a channel of 1,024 and a goroutine for each subscriber, no library
//	Gochannel     Watermill's, with channels of 1,024: a goroutine for each message and subscriber, no order
//	NATS          a server in the process, one connection for the publisher and one for all subscribers
//	EventBus      asaskevich's, Subscribe: called by reflection in the publisher's goroutine
//	Broadcaster   apimachinery's, queues of 1,000 as client-go's event recorder has, WaitIfChannelFull
//	EventStream   protoactor's: called in the publisher's goroutine
package buses
