package pipenet

import (
	"net"
	"time"
)

// Far returns the near end of a link to a connection. What is written at one end, and that it was closed, takes the
// delay to arrive at the other. Closing both ends ends the link.
func Far(conn net.Conn, delay time.Duration) net.Conn {
	there, here := net.Pipe()
	go carry(there, conn, delay)
	go carry(conn, there, delay)
	return here
}

// carry takes one direction of a link, until its source ends or its target takes no more.
func carry(to, from net.Conn, delay time.Duration) {
	defer to.Close()
	part := make([]byte, 4<<10)
	for {
		n, err := from.Read(part)
		time.Sleep(delay)
		if n > 0 {
			if _, failed := to.Write(part[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
