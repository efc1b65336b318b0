//go:build !linux

package transport

import (
	"net"
	"time"
)

// LimitUnacknowledged has no effect: the system decides when the other end of a connection is gone.
func LimitUnacknowledged(net.Conn, time.Duration) {}
