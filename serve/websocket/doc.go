// Package websocket lets browsers and other clients watch over WebSocket. Package serve
// does not need it: only programs that import it depend on a WebSocket library.
//
//	upgrader, err := websocket.New(websocket.Options{Origins: []string{"https://console.example.com"}})
//	server, err := serve.New(serve.Config{Resources: kinds, WebSocket: upgrader})
//
//	new WebSocket("wss://HOST/apis/example.com/v1/widgets?watch=1").onmessage = (m) => JSON.parse(m.data)
//
// # What is sent
//
// The request is that of any watch, with the same parameters, limits and refusals. Errors
// are answered before the upgrade, with a Status, except that of a revision that is gone,
// which is an ERROR event. Each event is one text message, {"type":…,"object":…}, of several
// frames if it is long.
// Messages of the client are ignored, up to 32 KiB each. The connection is closed
//
//	1000  at the watch's deadline, after an ERROR event, or when the kind is closed
//	1001  when the server shuts down: connect again
//	1009  after a message of more than 32 KiB from the client
//	1011  when a failure of the server has cut the watch off
//
// # Subprotocols
//
// A browser cannot send headers. [Tokens] takes the bearer token from a subprotocol, as
// the Kubernetes API server does. Otherwise subprotocols have no meaning for a watch. A
// client that offers some gets the first of them, since browsers insist on one.
//
// # Security
//
// A page of another origin can open a WebSocket and read from it. So the origin is
// checked as for a write. Requests without an origin are not from a browser.
//
// # Clients that are gone
//
// Each connection is pinged, and closed if it does not answer. One that has not taken an event
// within [serve.Limits].WriteStall is cut off, and holds up no other. A ping, and the answer to one
// that the client has sent, has to be taken within 5 s.
//
// # Cost
//
// A watch has two goroutines, that of its request and one that reads, and the
// memory of their stacks, of 8 KiB of buffers, and of its last event if that has at most 64 KiB.
package websocket
