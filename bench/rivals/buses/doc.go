// Package buses sets event buses up as contenders for the workloads that need no
// state.
//
// Each is set up so that it loses nothing, if it can be: with blocking where it
// offers to block, with its limits off where it offers that. Where a bus calls
// handlers in the publisher's goroutine, its delivery is a function call; such a
// bus has no queue, and one handler that blocks holds everybody up.
//
//	Channels      a channel of 1,024 and a goroutine for each subscriber, no library
//	Gochannel     Watermill's, with channels of 1,024: a goroutine for each message and subscriber, no order
//	NATS          a server in the process, one connection for the publisher and one for all subscribers
//	EventBus      asaskevich's, Subscribe: called by reflection in the publisher's goroutine
//	Broadcaster   apimachinery's, queues of 1,000 as client-go's event recorder has, WaitIfChannelFull
//	EventStream   protoactor's: called in the publisher's goroutine
package buses
